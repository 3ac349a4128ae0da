"""Draw what drifting_shop.py --out has kept: clicks relative to production's, week by week.

    python benchmarks/service/drifting_shop_figure.py build/drifting-shop.json docs/images/drifting-shop.svg

Several files of one shop can be named before the picture; their runs are drawn together.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saferank.reporting.figures.panels import drawing, write_figure
from saferank.reporting.looks import FAINT, INK, looks_of, policy_name

WEEK = 7


def weekly_gains(run: dict[str, Any], columns: list[str], queries: range) -> tuple[list[float], list[float]]:
    """Weeks, by their middle day, and clicks of these queries beyond production's, in percent."""
    served: defaultdict[int, float] = defaultdict(float)
    production: defaultdict[int, float] = defaultdict(float)
    for query, day, *row in run["by_day"]:
        if query in queries:
            served[day // WEEK] += row[columns.index("served")]
            production[day // WEEK] += row[columns.index("production")]
    weeks = sorted(production)
    return [WEEK * (week + 0.5) for week in weeks], [100 * (served[week] / production[week] - 1) for week in weeks]


def draw(axes: Axes, runs: list[dict[str, Any]], columns: list[str], options: dict[str, str], queries: range) -> None:
    """All runs for some of the queries."""
    drift, lifetime = int(options["span"]) // 2, int(options["lifetime"])
    axes.axvspan(drift, drift + 2 * lifetime, color=FAINT, alpha=0.5, zorder=0)
    axes.axhline(0, color=INK, linewidth=1)
    axes.axvline(drift, color=INK, linewidth=1, linestyle=":")
    looks = looks_of([run["policy"] for run in runs])
    for run in runs:
        days, gains = weekly_gains(run, columns, queries)
        style = "-" if run["days"] else "--"
        ends = f"certificates of {run['days']:g} days" if run["days"] else "without end"
        name, colour = policy_name(run["policy"]), looks[run["policy"]].colour
        axes.plot(days, gains, style, color=colour, linewidth=1.6, label=f"{name}, {ends}")
    axes.set_xlabel("day")
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path, nargs="+", help="files of drifting_shop.py --out")
    parser.add_argument("picture", type=Path, help="the SVG file to write")
    chosen = parser.parse_args()
    files = [json.loads(path.read_text()) for path in chosen.kept]
    runs = [run for kept in files for run in kept["runs"]]
    columns, options = files[0]["columns"], files[0]["options"]
    head, everything = int(options["head"]), int(options["queries"])
    with drawing():
        figure = Figure(figsize=(7.6, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw(left, runs, columns, options, range(head))
        draw(right, runs, columns, options, range(everything))
        left.set_title(f"The {head} queries with most traffic")
        right.set_title(f"All {everything} queries")
        left.set_ylabel("clicks per page relative to production's, %")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    write_figure(figure, chosen.picture)


if __name__ == "__main__":
    main()
