"""Policies that the contexts of a store were served by must be known before anything is read with them."""

import json

from saferank.cli.terminal.errors import InputError


async def check_policies_known(store: str) -> None:
    """InputError for a context of a policy that is not registered; StoreError unless there is a store."""
    from saferank.policies import policy_kind
    from saferank.store.opening import open_store

    opened = open_store(store, readonly=True)
    await opened.open()
    try:
        policies = {json.loads(row.terms)["policy"]: row.name for row in await opened.contexts()}
    finally:
        await opened.close()
    for policy, context in policies.items():
        try:
            policy_kind(policy)
        except ValueError as problem:
            raise InputError(
                f"{opened.name}: context {context!r} is served by the policy {policy!r}, which is not known here; "
                "name its file or module by --plugin"
            ) from problem
