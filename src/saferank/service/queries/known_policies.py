"""Policies that the contexts of a store were served by must be known before anything is read with them."""

import json

from saferank.errors import ArgumentError
from saferank.policies import policy_kind
from saferank.store.contract import DamagedStoreError, OperationKind, StoreError
from saferank.store.opening import open_store


async def check_policies_known(store: str) -> None:
    """Raise ``ArgumentError`` for a policy that is not registered, ``StoreError`` unless there is a store."""
    opened = open_store(store, readonly=True)
    await opened.open()
    try:
        names = {row.id: row.name for row in await opened.contexts()}
        policies = {json.loads(row.terms)["policy"]: row.name for row in await opened.contexts()}
        for row in await opened.operations(0):
            terms = json.loads(row.body).get("terms") if row.kind == OperationKind.RESET else None
            if terms is not None:
                policies.setdefault(terms["policy"], names[row.context])
    except StoreError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as problem:
        raise DamagedStoreError(f"{opened.name}: is damaged: the terms of a context cannot be read") from problem
    finally:
        await opened.close()
    for policy, context in policies.items():
        try:
            policy_kind(policy)
        except ValueError as problem:
            raise ArgumentError(
                "plugin",
                f"{opened.name}: context {context!r} is served by the policy {policy!r}, which is not known here; "
                "name its file or module",
            ) from problem
