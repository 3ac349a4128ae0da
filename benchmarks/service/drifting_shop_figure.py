"""Draw what drifting_shop.py --out has kept, and print its table: clicks relative to production's, over all seeds.

    python benchmarks/service/drifting_shop_figure.py build/drifting-shop.json docs/images/drifting-shop.svg

Several files of one shop can be named before the picture; their runs are taken together. Thin lines of the picture are
seeds, thick ones their means, week by week. A cell of the table is the mean over the seeds and, in brackets, the lowest
and the highest of them.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saferank.reporting.figures.panels import drawing, write_figure
from saferank.reporting.looks import FAINT, INK

WEEK = 7
COLOURS = {"defaults": "#1f5fb0", "second-edition": "#c2571a", "endless": "#4d7f3a"}
NAMES = {"defaults": "defaults", "second-edition": "defaults of version 0.2.0", "endless": "certificates without end"}

Run = dict[str, Any]


def weekly_gains(run: Run, columns: list[str], queries: range) -> dict[int, float]:
    """By week: clicks of these queries beyond production's, in percent."""
    served: defaultdict[int, float] = defaultdict(float)
    production: defaultdict[int, float] = defaultdict(float)
    for query, day, *row in run["by_day"]:
        if query in queries:
            served[day // WEEK] += row[columns.index("served")]
            production[day // WEEK] += row[columns.index("production")]
    return {week: 100 * (served[week] / production[week] - 1) for week in sorted(production)}


def draw(axes: Axes, runs: dict[str, list[Run]], columns: list[str], options: dict[str, str], queries: range) -> None:
    """All runs for some of the queries."""
    drift, lifetime = int(options["span"]) // 2, int(options["lifetime"])
    axes.axvspan(drift, drift + 2 * lifetime, color=FAINT, alpha=0.5, zorder=0)
    axes.axhline(0, color=INK, linewidth=1)
    axes.axvline(drift, color=INK, linewidth=1, linestyle=":")
    for name, seeds in runs.items():
        gains = [weekly_gains(run, columns, queries) for run in seeds]
        days = [WEEK * (week + 0.5) for week in gains[0]]
        for one in gains:
            axes.plot(days, list(one.values()), color=COLOURS[name], linewidth=0.7, alpha=0.5)
        means = [mean(one[week] for one in gains) for week in gains[0]]
        axes.plot(days, means, color=COLOURS[name], linewidth=2, label=NAMES[name])
    axes.set_xlabel("day")
    axes.spines[["top", "right"]].set_visible(False)


def table(runs: dict[str, list[Run]]) -> list[str]:
    """The rows of the docs: gains by group and stretch, violations, frozen queries and stops."""
    rows = ["| settings | queries | before | 1st | 2nd | 3rd | end | violations | frozen | stops |", "|---" * 10 + "|"]
    for name, seeds in runs.items():
        found = [run["summary"] for run in seeds]
        for group in ("head", "tail", "all"):
            cells = [_cell([one["gains"][group][at] for one in found]) for at in range(len(found[0]["gains"][group]))]
            counts = ["", "", ""]
            if group == "all":
                by_stretch = [", ".join(map(str, one["violations"])) for one in found]
                counts = ["; ".join(by_stretch), _slashed(found, "frozen"), _slashed(found, "stopped")]
            rows.append("| " + " | ".join([NAMES[name] if group == "head" else "", group, *cells, *counts]) + " |")
    return rows


def _cell(gains: list[float]) -> str:
    low, middle, high = (f"{100 * value:+.1f}" for value in (min(gains), mean(gains), max(gains)))
    return f"{middle} ({low}, {high})"


def _slashed(found: list[dict[str, Any]], name: str) -> str:
    return " / ".join(str(one[name]) for one in found)


def main() -> None:
    """Draw the picture and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path, nargs="+", help="files of drifting_shop.py --out")
    parser.add_argument("picture", type=Path, help="the SVG file to write")
    chosen = parser.parse_args()
    files = [json.loads(path.read_text()) for path in chosen.kept]
    runs: dict[str, list[Run]] = {}
    for run in sorted((run for kept in files for run in kept["runs"]), key=lambda run: run["seed"]):
        runs.setdefault(run["run"], []).append(run)
    columns, options = files[0]["columns"], files[0]["options"]
    head, everything = int(options["head"]), int(options["queries"])
    with drawing():
        figure = Figure(figsize=(7.6, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw(left, runs, columns, options, range(head))
        draw(right, runs, columns, options, range(head, everything))
        left.set_title(f"The {head} queries with most traffic")
        right.set_title(f"The other {everything - head} queries")
        left.set_ylabel("clicks per page relative to production's, %")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    write_figure(figure, chosen.picture)
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
