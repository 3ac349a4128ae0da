"""How well a fitted model foresees pages that it was not fitted to.

    perplexity = 2 ^ (-mean of log2 P(click or not at k | clicks above k))

It is 1 for a prophet and 2 for a fair coin, by position over the pages that reach down to it, or over all positions of
all pages. This is the *conditional* perplexity of the click model literature: the model sees the clicks above, as it
does in the likelihood, of which it is another form. Both are exact: a model that holds what happened for impossible
(CM, two clicks on a page) gets a log-likelihood of -inf, and the share of such pages is reported.

The predicted click-through of a position sees no clicks: P(click at k) on each page as shown, averaged over pages. What
is clicked above k does not depend on what is shown below, so that it is the difference of two expected numbers of
clicks: of the page down to k, and of the page down to k - 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from saferank._kernel import kernel
from saferank.fitting.likelihood import page_length, surprise
from saferank.logs.records import DistinctPages
from saferank.verbs import Floats, Ints, Items, expected_clicks


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One model on one set of pages."""

    log_likelihood: float  # of a page, on average, natural logarithm
    perplexity: float
    perplexities: Floats  # by position
    impossible: float  # share of pages
    shown: Ints  # pages that reach down to each position
    predicted: Floats  # click-through by position
    observed: Floats  # click-through by position


def evaluate_model(model: Any, pages: DistinctPages) -> Evaluation:
    """Likelihood, perplexity and click-through of ``pages`` under ``model``."""
    seen, n_pages = surprise(model, pages), pages.weight.sum()
    return Evaluation(
        log_likelihood=float(-seen.nats.sum() / n_pages),
        perplexity=float(np.exp(seen.nats.sum() / seen.shown.sum())),
        perplexities=np.exp(seen.nats / np.maximum(seen.shown, 1)),
        impossible=float(seen.impossible[0] / n_pages),
        shown=seen.shown,
        predicted=predicted_clicks(model, pages) / np.maximum(seen.shown, 1),
        observed=pages.weight @ pages.clicks / np.maximum(seen.shown, 1),
    )


def predicted_clicks(model: Any, pages: DistinctPages) -> Floats:
    """The expected number of clicks at every position, summed over pages."""
    clicks = np.zeros(pages.items.shape[1])
    _add_expected(model, pages.items.astype(np.uint32), pages, clicks)
    return clicks


@kernel
def _add_expected(model: Any, items: Items, pages: DistinctPages, clicks: Floats) -> None:
    for n in range(len(items)):
        above = 0.0
        for k in range(page_length(pages.items[n])):
            so_far = expected_clicks(model, items[n, : k + 1])
            clicks[k] += pages.weight[n] * (so_far - above)
            above = so_far
