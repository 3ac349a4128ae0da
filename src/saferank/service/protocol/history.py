"""A context as it was: the fold, taken up from a kept snapshot until it comes to a version."""

from saferank.service.knowledge.fold import Fold
from saferank.service.knowledge.publications import read_head, restored
from saferank.service.protocol.contexts import Context, Contexts, terms_of
from saferank.store.contract import Publication, Store, VersionRow


class _Reached(Exception):  # noqa: N818 (nothing went wrong)
    """The version that was looked for is there."""


class DeletedVersionError(ValueError):
    """Nobody can go back to a version: the pages that led to it were deleted, or a reset took other terms since."""


def other_terms(fold: Fold, version: int) -> str:
    """Why nobody can go back to a version from before ``Fold.terms_version``."""
    return (
        f"version {version} cannot be restored: a reset gave the context another policy, rule or lifetime of "
        f"certificates since; the oldest version that can be is {fold.terms_version}"
    )


async def oldest_version(store: Store, context: int) -> int:
    """The oldest version that somebody can go back to: those before it led over pages that were deleted."""
    if not await store.pruned_through(context):
        return 1
    kept = await store.snapshots(context)
    return 1 + int(read_head(kept[0].body)["version"]) if kept else 1


async def fold_at_version(store: Store, contexts: Contexts, context: Context, version: int) -> Fold:
    """What was known at the moment at which a context came to a version; DeletedVersionError if that is gone."""
    if version < context.fold.terms_version:
        raise DeletedVersionError(f"context {context.number}: {other_terms(context.fold, version)}")
    if version < await oldest_version(store, context.number):
        raise DeletedVersionError(f"context {context.number}: the pages that led to version {version} were deleted")
    begin: Publication | None = None
    rollbacks = {0}
    for publication in await store.snapshots(context.number):
        facts = read_head(publication.body)
        rollback = facts["rollback_version"]
        if rollback not in rollbacks and rollback <= version <= facts["version"]:
            return restored(
                publication, terms_of(context.row)
            )  # the first one after a rollback is of the rollback itself
        rollbacks.add(rollback)
        if facts["version"] < version:
            begin = publication
    fold = await contexts.fold_of(context.row, begin)
    return fold if fold.version == version else await _sought(store, context, fold, version)


async def _sought(store: Store, context: Context, fold: Fold, version: int) -> Fold:
    def stop_at(row: VersionRow) -> None:
        if row.version == version:
            raise _Reached

    fold.version_made = stop_at
    through, window = context.fold.through, context.terms.window_ms
    fold.recall(await store.pages_between(context.number, fold.through // window * window - 1, fold.through))
    try:
        fold.fold(await store.pages_between(context.number, fold.through, through), through)
    except _Reached:
        return fold
    raise ValueError(f"context {context.number}: version {version} cannot be reached from the log")
