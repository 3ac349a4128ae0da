"""Tables for the screen."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from saferank.report.claims import final_regret
from saferank.report.pooling import Pooled, pooled
from saferank.simulation.bench import Timing
from saferank.simulation.results import Result


def results_table(results: list[Result]) -> Table:
    """The end of every curve: one row per click model and policy, averaged over instances."""
    curves = pooled(results)
    last = f"after {curves[0].rounds[-1]:,} rounds, averaged over instances"
    table = Table("model", "policy", title=last, box=box.SIMPLE_HEAD, title_justify="left")
    for heading in ("regret", "violations a run", "wrong certificates"):
        table.add_column(heading, justify="right")
    for curve, following in zip(curves, [*curves[1:], None], strict=True):
        table.add_row(*_row(curve), end_section=following is not None and following.model != curve.model)
    return table


def _row(curve: Pooled) -> tuple[str, ...]:
    wrong = "-" if curve.wrong_certificates is None else f"{curve.wrong_certificates[-1]:.3g}"
    return curve.model, curve.policy, str(final_regret(curve)), f"{curve.violations[-1]:,.4g}", wrong


def timing_table(timings: Sequence[Timing], title: str, unit: str) -> Table:
    """One row per policy, one column per click model; ``unit`` is what a cell shows: ns or multiples."""
    models = list(dict.fromkeys(timing.model for timing in timings))
    table = Table("policy", title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for model in models:
        table.add_column(model, justify="right")
    for policy in dict.fromkeys(timing.policy for timing in timings):
        table.add_row(policy, *(_cell(timing, unit) for timing in timings if timing.policy == policy))
    return table


def _cell(timing: Timing, unit: str) -> str:
    return f"{timing.nanoseconds:.0f}" if unit == "ns" else f"{timing.multiple:.1f}x"
