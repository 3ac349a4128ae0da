"""Tables of ``saferank fit``: how far EM came, and how well models foresee held-out pages."""

from collections.abc import Mapping

from rich import box
from rich.table import Table

from saferank.fitting import Fitted
from saferank.fitting.evaluation import Evaluation


def convergence_table(fits: Mapping[str, Fitted]) -> Table:
    """Where EM stands after its last iteration, and how much it still moved."""
    table = _table("estimation", "iterations", "log-likelihood", "last change")
    for name, fitted in fits.items():
        change = "-" if fitted.last_change is None else f"{fitted.last_change:+.2g}"
        table.add_row(name, str(fitted.iterations), f"{fitted.log_likelihoods[-1]:,.2f}", change)
    return table


def evaluation_table(evaluations: Mapping[str, Evaluation], n_pages: int) -> Table:
    """All models side by side, the most likely one marked."""
    title = f"{n_pages:,} held-out pages (* the best model)"
    table = _table(title, "log-likelihood a page", "perplexity", "impossible pages")
    best = max(evaluations, key=lambda name: evaluations[name].log_likelihood)
    for name, found in evaluations.items():
        row = f"{found.log_likelihood:.4f}", f"{found.perplexity:.4f}", f"{100 * found.impossible:.1f} %"
        table.add_row(f"{name} *" if name == best else name, *row)
    return table


def position_table(evaluations: Mapping[str, Evaluation]) -> Table:
    """Perplexity by position, one column per model."""
    table = _table("perplexity by position", *evaluations, first="position")
    rows = zip(*(found.perplexities for found in evaluations.values()), strict=True)
    for k, row in enumerate(rows):
        table.add_row(str(k + 1), *(f"{perplexity:.4f}" for perplexity in row))
    return table


def _table(title: str, *headings: str, first: str = "model") -> Table:
    table = Table(first, title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table
