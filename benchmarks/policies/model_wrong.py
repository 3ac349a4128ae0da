"""When the model is wrong: the study of docs/researchers/model-wrong.md, its tables and its figure.

python benchmarks/policies/model_wrong.py play LINES.json                       # the embedded set
python benchmarks/policies/model_wrong.py play LINES.json yandex60.json         # an instance file
python benchmarks/policies/model_wrong.py show LINES.json ... --figure FILE.svg # tables in Markdown, and one figure
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from saferank import embedded_instances, load_instances, simulate
from saferank.reporting.figures.panels import drawing, write_figure
from saferank.reporting.looks import looks_of, policy_name
from saferank.reporting.pooling import Pooled, pooled
from saferank.reporting.study import made_for

MODELS = ("pbm", "cm", "dcm", "ubm", "dbn", "ccm")
STUDIED = (
    "cascade-kl-ucb", "pbm-ucb", "pbm-ts", "batch-rank", "top-rank", "uni-rank", "kl-ucb-br", "safe-draw",
    "original",
)  # fmt: skip
DRAWN = tuple(policy for policy in STUDIED if policy != "original")

Study = dict[str, Any]


def play(options: argparse.Namespace) -> None:
    """Play the study on one set and write its lines."""
    instances = load_instances(options.instances) if options.instances else embedded_instances(20)
    by_model = sorted(instances, key=lambda instance: MODELS.index(instance.model_name))
    before = os.times()
    results = simulate(
        by_model, STUDIED, rounds=options.rounds, repetitions=options.repetitions, rule=options.rule,
        jobs=options.jobs, checkpoints=(options.rounds,),
    )  # fmt: skip
    lines = pooled(results.means)
    after = os.times()
    study = {
        "title": Path(options.instances).name if options.instances else "embedded set",
        "rounds": options.rounds,
        "rule": options.rule,
        "cpu_seconds": round(after.user - before.user),
        "lines": [
            {
                "policy": line.policy,
                "model": line.model,
                "queries": line.instances,
                "repetitions": line.repetitions,
                **{measure: ends(line, measure) for measure in ("regret", "violations")},
            }
            for line in lines
        ],
    }
    options.lines.write_text(json.dumps(study, indent=1))
    print(f"{len(lines)} lines, {study['cpu_seconds']} s of CPU, in {options.lines}")


def ends(line: Pooled, measure: str) -> dict[str, float | None]:
    """The end of a curve, with its standard errors within and across queries."""
    found = getattr(line, measure).end
    return {"mean": found.mean, "within": found.stderr, "across": found.across}


def cells(study: Study) -> dict[tuple[str, str], dict[str, Any]]:
    """The lines of a study by policy and click model."""
    return {(line["policy"], line["model"]): line for line in study["lines"]}


def number(value: float | None) -> str:
    """A number with about three digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def table(study: Study, what: str) -> str:
    """A table in Markdown: policies down, models across, mean (standard error within, across); matching ones bold."""
    by_cell, rows = cells(study), []
    for policy in STUDIED:
        row = [f"`{policy}`"]
        for model in MODELS:
            line = by_cell[policy, model]
            estimate = line[what]
            text = f"{number(estimate['mean'])} ({number(estimate['within'])}, {number(estimate['across'])})"
            row.append(f"**{text}**" if made_for(policy) == model else text)
        rows.append("| " + " | ".join(row) + " |")
    head = "| policy | " + " | ".join(model.upper() for model in MODELS) + " |"
    return "\n".join([head, "|---" * (len(MODELS) + 1) + "|", *rows])


def draw(studies: list[Study], path: Path) -> None:
    """Regret above, violations below, one column for each set; a ring marks the policy's own click model."""
    with drawing():
        figure = _figure(studies)
    write_figure(figure, path)


def _figure(studies: list[Study]) -> Figure:
    figure = Figure(figsize=(4.8 * len(studies), 6.2), layout="constrained")
    axes: Any = figure.subplots(2, len(studies), sharex=True, squeeze=False)
    for column, study in enumerate(studies):
        for row, what in enumerate(("regret", "violations")):
            _panel(axes[row][column], study, what)
        queries, repetitions = study["lines"][0]["queries"], study["lines"][0]["repetitions"]
        axes[0][column].set_title(f"{study['title']}: {queries} queries, {repetitions} repetitions", fontsize=11)
    axes[0][0].set_ylabel(f"regret at {studies[0]['rounds']:,} rounds")
    axes[1][0].set_ylabel("violations a run")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


def _panel(axis: Any, study: Study, what: str) -> None:
    by_cell, looks = cells(study), looks_of(list(STUDIED))
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


def show(options: argparse.Namespace) -> None:
    """Print the tables of studies that were played, and draw them."""
    studies = [json.loads(path.read_text()) for path in options.lines]
    for study in studies:
        print(f"\n## {study['title']} ({study['cpu_seconds']} s of CPU)\n")
        print(f"Regret:\n\n{table(study, 'regret')}\n\nViolations a run:\n\n{table(study, 'violations')}")
    if options.figure:
        draw(studies, options.figure)


def main() -> None:
    """Parse and do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    playing = commands.add_parser("play")
    playing.add_argument("lines", type=Path)
    playing.add_argument("instances", nargs="?")
    playing.add_argument("--rounds", type=int, default=100_000)
    playing.add_argument("--repetitions", type=int, default=2)
    playing.add_argument("--rule", default="paper:1/T")
    playing.add_argument("--jobs", type=int, default=2)
    playing.set_defaults(act=play)
    showing = commands.add_parser("show")
    showing.add_argument("lines", type=Path, nargs="+")
    showing.add_argument("--figure", type=Path)
    showing.set_defaults(act=show)
    options = parser.parse_args()
    options.act(options)


if __name__ == "__main__":
    main()
