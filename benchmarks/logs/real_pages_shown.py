"""Tables in Markdown and figures of the run of ``real_pages.py``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from swapped_pairs import Agreement, Swap, significant

from saferank.experiments.results import Results
from saferank.reporting.figures.panels import write_figure
from saferank.reporting.looks import FAINT, INK, looks_of, model_name, policy_name
from saferank.reporting.numbers import Measured
from saferank.reporting.pooling import Pooled, pooled
from saferank.verbs import Floats

if TYPE_CHECKING:
    from real_pages import Foresight, Verdict

BASELINES = ("kl-ucb-br", "safe-draw")
"""Paired differences are shown against these; all pairs are tested together."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def number(value: float | None, digits: int = 3) -> str:
    """A number with about ``digits`` digits, whole from 100 on; what only rounding makes differ from 0 is 0."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 99.5 or abs(value) < 1e-9 else f"{value:.{digits}g}"


def tables(ranks: Sequence[Foresight], found: Mapping[str, Sequence[Verdict]], results: Results) -> dict[str, str]:
    """Everything that the run has measured, by name."""
    lines = pooled(results.means)
    return {
        "held-out": _held_out(ranks),
        **{what: _by_model(lines, what) for what in ("regret", "violations")},
        **{f"minus-{base}": _differences(results, base) for base in BASELINES},
        **{name: _agreements(rows) for name, rows in found.items()},
    }


def _held_out(ranks: Sequence[Foresight]) -> str:
    head = (
        "model",
        "log-likelihood",
        "behind the best",
        "perplexity",
        "impossible pages",
        "to the first click",
        "best on queries",
    )
    rows = [
        (
            f"`{row.model}`",
            f"{row.log_likelihood:.4f}",
            f"{row.behind:.4f} ± {row.behind_error:.4f}" if math.isfinite(row.behind) else "inf",
            f"{row.perplexity:.4f}",
            f"{row.impossible:.1%}",
            f"{row.first_click:.4f}",
            str(row.best_on),
        )
        for row in ranks
    ]
    return table(head, rows)


def _by_model(lines: Sequence[Pooled], measure: str) -> str:
    models = list(dict.fromkeys(line.model for line in lines))
    cells = {(line.policy, line.model): getattr(line, measure).end for line in lines}
    rows = [
        [f"`{policy}`", *(_estimate(cells[policy, model]) for model in models)]
        for policy in dict.fromkeys(line.policy for line in lines)
    ]
    return table(["policy", *map(model_name, models)], rows)


def _estimate(found: Measured) -> str:
    return f"{number(found.mean)} ({number(found.stderr, 2)}, {number(found.across, 2)})"


def _differences(results: Results, base: str) -> str:
    """Each policy minus the base by model: mean (errors), better / tied / worse queries, p-value adjusted by Holm."""
    cells: dict[tuple[str, str], str] = {}
    for each in results.compare_all().pairs.to_dicts():
        first, second = (each[side].partition(" ")[0] for side in ("a", "b"))  # a name with its rule is a label
        if base in (first, second):
            sign = -1 if first == base else 1
            won, lost = (each["wins"], each["losses"]) if sign > 0 else (each["losses"], each["wins"])
            errors = f"({number(each['stderr_within'], 2)}, {number(each['stderr_across'], 2)})"
            counts = f"{won}/{each['ties']}/{lost}; p {number(each['p_holm'], 2)}"
            name = second if sign < 0 else first
            cells[name, each["model"]] = f"{number(sign * each['difference'])} {errors}; {counts}"
    others = [policy for policy in results.policies if policy != base]
    rows = [[f"`{policy}`", *(cells[policy, model] for model in results.models)] for policy in others]
    return table(["policy", *map(model_name, results.models)], rows)


def _agreements(found: Sequence[Verdict]) -> str:
    """Orders down; readings across, of each all pairs and the significant ones."""
    readings = list(dict.fromkeys(row.reading for row in found))
    cells = {(row.order, row.reading): row for row in found}
    rows = []
    for order in dict.fromkeys(row.order for row in found):
        of_order = [cells[order, reading] for reading in readings]
        rows.append([f"`{order}`", *(_share(part) for row in of_order for part in (row.all_pairs, row.significant))])
    return table(["order", *(f"{name}: {which}" for name in readings for which in ("all", "significant"))], rows)


def _share(found: Agreement) -> str:
    if not found.pairs:
        return "no pairs"
    share, low, high = (round(100 * value) for value in (found.agree / found.pairs, found.low, found.high))
    return f"{found.agree} of {found.pairs}, {share} % ({low} to {high})"


def draw_policies(path: Path, results: Results, title: str) -> None:
    """Regret above and violations below by click model, with standard errors across queries."""
    lines, looks = pooled(results.means), looks_of(results.policies)
    figure = Figure(figsize=(7.6, 6.6), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    for panel, measure in zip(panels, ("regret", "violations"), strict=True):
        for place, policy in enumerate(results.policies):
            found = [getattr(line, measure).end for line in lines if line.policy == policy]
            x = np.arange(len(found)) + (place - (len(results.policies) - 1) / 2) * 0.09
            means, errors = [each.mean for each in found], [each.across or 0.0 for each in found]
            look = looks[policy]
            panel.errorbar(x, means, yerr=errors, fmt=look.marker, color=look.colour, label=policy_name(policy), ms=6)
        _finish(panel, f"{measure} at {lines[0].rounds[-1]:,} rounds")
    panels[0].set_yscale("log")
    panels[1].set_yscale("symlog", linthresh=1)
    panels[1].set_ylim(bottom=-0.4)
    panels[1].set_xticks(range(len(results.models)), [model_name(model) for model in results.models])
    panels[0].set_title(title, color=INK, fontsize=11, parse_math=False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    write_figure(figure, path)


def draw_pairs(path: Path, swaps: Sequence[Swap], scores: Mapping[str, Floats], models: Sequence[str]) -> None:
    """Every pair a point: the log odds ratio of its swaps against that of its fitted attractions, by click model."""
    figure = Figure(figsize=(3.5 * len(models), 4.2), layout="constrained")
    panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    clear = {swap[:3] for swap in significant(swaps)}
    shown = [swap for swap in swaps if swap.sign and 0 < swap.odds_ratio < math.inf]
    for panel, model in zip(panels, models, strict=True):
        for groups, colour, marker, label in (
            ([swap for swap in shown if swap[:3] not in clear], "#a9a9b3", "o", "not significant"),
            ([swap for swap in shown if swap[:3] in clear], "#1b5e9b", "D", "significant after Holm"),
        ):
            _points(panel, groups, scores[model], colour, marker, label)
        panel.axhline(0, color=FAINT, zorder=0)
        panel.axvline(0, color=FAINT, zorder=0)
        _finish(panel, "")
        panel.set_title(model_name(model), color=INK, fontsize=11)
        panel.set_xlabel("log odds ratio of fitted attractions", color=INK)
    panels[0].set_ylabel("log odds ratio by the swaps", color=INK)
    panels[0].set_ylim(-6.5, 6.5)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    write_figure(figure, path)


def _points(panel: Any, swaps: Sequence[Swap], score: Floats, colour: str, marker: str, label: str) -> None:
    x = [_logit(score[swap.a]) - _logit(score[swap.b]) for swap in swaps]
    y = np.log([swap.odds_ratio for swap in swaps])
    low, high = (np.log(np.clip([getattr(swap, end) for swap in swaps], 1e-6, 1e6)) for end in ("low", "high"))
    panel.errorbar(
        x, y, yerr=[y - low, high - y], fmt=marker, color=colour, ms=4.5, lw=0, elinewidth=0.6, alpha=0.8, label=label
    )


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _finish(panel: Any, label: str) -> None:
    panel.set_ylabel(label, color=INK)
    panel.grid(axis="y", color=FAINT, lw=0.6)
    panel.set_axisbelow(True)
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
