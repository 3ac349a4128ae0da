"""When the model is wrong: the study of docs/researchers/model-wrong.md.

``benchmarks/figures.py model_wrong`` plays it, ``benchmarks/pictures.py model_wrong`` draws it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from saferank import simulate
from saferank.instances import Instance
from saferank.reporting.looks import looks_of, policy_name
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.study import made_for

MODELS = ("pbm", "cm", "dcm", "ubm", "dbn", "ccm")
STUDIED = (
    "cascade-kl-ucb", "pbm-ucb", "pbm-ts", "batch-rank", "top-rank", "uni-rank", "kl-ucb-br", "safe-draw",
    "original",
)  # fmt: skip
DRAWN = tuple(policy for policy in STUDIED if policy != "original")
ROUNDS, REPETITIONS = 100_000, 2

Line = dict[str, Any]
"""Regret and violations of a policy under a click model: mean, and standard errors within and across queries."""


def measured(instances: Sequence[Instance]) -> list[Line]:
    """The lines of one set of queries."""
    by_model = sorted(instances, key=lambda instance: MODELS.index(instance.model_name))
    results = simulate(by_model, STUDIED, rounds=ROUNDS, repetitions=REPETITIONS, checkpoints=[ROUNDS], progress=False)
    return [
        {
            "policy": line.policy,
            "model": line.model,
            "queries": line.instances,
            **{measure: ends(line, measure) for measure in ("regret", "violations")},
        }
        for line in pooled(results.means)
    ]


def ends(line: Pooled, measure: str) -> dict[str, float | None]:
    """The end of a curve, with its standard errors within and across queries."""
    found = getattr(line, measure).end
    return {"mean": found.mean, "within": found.stderr, "across": found.across}


def drawn(studies: dict[str, list[Line]]) -> Figure:
    """Regret above, violations below, one column for each set; a ring marks the policy's own click model."""
    figure = Figure(figsize=(4.8 * len(studies), 6.2), layout="constrained")
    axes: Any = figure.subplots(2, len(studies), sharex=True, squeeze=False)
    for column, (title, lines) in enumerate(studies.items()):
        for row, what in enumerate(("regret", "violations")):
            _panel(axes[row][column], lines, what)
        axes[0][column].set_title(f"{title}: {lines[0]['queries']} queries, {REPETITIONS} repetitions", fontsize=11)
    axes[0][0].set_ylabel(f"regret at {ROUNDS:,} rounds")
    axes[1][0].set_ylabel("violations a run")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _panel(axis: Any, lines: list[Line], what: str) -> None:
    by_cell, looks = {(line["policy"], line["model"]): line for line in lines}, looks_of(list(STUDIED))
    for place, policy in enumerate(DRAWN):
        x = np.arange(len(MODELS)) + (place - (len(DRAWN) - 1) / 2) * 0.1
        estimates = [by_cell[policy, model][what] for model in MODELS]
        means, errors = [each["mean"] for each in estimates], [each["across"] or 0.0 for each in estimates]
        look = looks[policy]
        axis.errorbar(
            x, means, yerr=errors, fmt=look.marker, color=look.colour, label=policy_name(policy), ms=5.5, lw=1.2
        )
        for at, mean, model in zip(x, means, MODELS, strict=True):
            if made_for(policy) == model:
                axis.plot(at, mean, "o", ms=14, mfc="none", mec=look.colour, mew=1.2)
    if what == "regret":
        axis.set_yscale("log")
    else:
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=-0.3)
    axis.set_xticks(range(len(MODELS)), [model.upper() for model in MODELS])
    axis.grid(axis="y", color="#d7d7de", lw=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
