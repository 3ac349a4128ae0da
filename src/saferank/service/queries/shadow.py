"""How far the policy's pages are from production's, and what is known of their clicks, without showing them."""

from saferank.service.knowledge.arms.shadow import ShadowCounts, total
from saferank.service.knowledge.publications import read_head
from saferank.service.protocol.server import Server, unavailable
from saferank.service.wire.shadow_views import ClickBoundsView, ShadowView
from saferank.store.contract import ContextRow, StoreUnavailableError


class Shadow:
    """Reads what closed shadow pages counted."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def context(self, tenant: str, name: str) -> ShadowView:
        """The shadow pages of a context."""
        return shadow_view((await self._server.known_context(tenant, name)).fold.shadow)

    async def everywhere(self, tenant: str) -> ShadowView:
        """The shadow pages of all contexts of a tenant."""
        try:
            rows = [row for row in await self._server.store.contexts() if row.tenant == tenant]
            return shadow_view(total([await self._counts(row) for row in rows]))
        except StoreUnavailableError as problem:
            raise unavailable(problem) from problem

    async def _counts(self, row: ContextRow) -> ShadowCounts:
        """From the head of its publication, unless it is in memory."""
        context = self._server.contexts.numbered(row.id)
        if context is not None:
            return context.fold.shadow
        publication = await self._server.store.publication(row.id)
        return ShadowCounts() if publication is None else ShadowCounts(*read_head(publication.body)["shadow"])


def shadow_view(counts: ShadowCounts) -> ShadowView:
    """The counts as means and bounds."""
    pages, differing = counts.pages, counts.pages - counts.same
    return ShadowView(
        pages=pages,
        same=counts.same,
        differing=differing,
        differing_share=_mean(differing, pages),
        exchanged_pairs=_mean(counts.exchanged_pairs, pages),
        new_items=_mean(counts.new_items, pages),
        clicks=_mean(counts.clicks, pages),
        clicks_where_same=_mean(counts.same_clicks, counts.same),
        clicks_where_differing=_mean(counts.clicks - counts.same_clicks, differing),
        would_have_got=_bounds(counts, 0, 0),
        would_have_got_read_from_the_top=_bounds(counts, counts.top_clicks, counts.top_places),
        would_have_got_by_place=_bounds(counts, counts.kept_clicks, counts.kept_places),
    )


def _bounds(counts: ShadowCounts, clicks: int, places: int) -> ClickBoundsView | None:
    """Of differing pages the clicks on some places are known; every other place may have been clicked or not."""
    if counts.pages == 0:
        return None
    known = counts.same_clicks + clicks
    return ClickBoundsView(low=known / counts.pages, high=(known + counts.places - places) / counts.pages)


def _mean(amount: int, pages: int) -> float | None:
    return amount / pages if pages else None
