"""What a list needs of a context is read from its publication."""

from saferank.service.knowledge.fold import Fold, pack
from saferank.service.knowledge.knowledge import Terms
from saferank.service.protocol.all_contexts import figures_of
from saferank.store.contract import Publication


def test_terms_that_a_reset_took_are_read_from_the_publication() -> None:
    terms = Terms("kl-ucb-br", "anytime:0.5", 1000, 0, opened_at=5)
    fold = Fold.opened(1, terms, 2, bytes(16), (["a", "b", "c"], []))
    assert figures_of(Publication(1, 1, 50, 0, pack(fold))).terms is None
    fold.reset(7, 90, "new terms", {"lifetime_ms": 50})
    figures = figures_of(Publication(1, 2, 90, 7, pack(fold)))
    assert figures.terms == terms._replace(lifetime_ms=50, opened_at=90, first_epoch=1)
    assert (figures.epoch, figures.operation) == (1, 7)
