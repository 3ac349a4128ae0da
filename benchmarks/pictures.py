"""Draw the pictures of the documentation: SVG, one style, real runs with fixed seeds.

    make pictures                            # all of them
    python benchmarks/pictures.py policies rules   # some

A picture is a function of this file. The ground is white, so that it can be read on a dark page, too. Those of the last
part are drawn from docs/reference/figures.json, and those of real pages by ``benchmarks/figures.py real_pages``.
"""

import argparse
import json
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saferank import Ranker, decision_rule, embedded_instances, reproduce, simulate
from saferank.click_models import CLICK_MODELS
from saferank.policies import POLICIES
from saferank.randomness import stream
from saferank.reporting.figures.forecast import weeks_figure
from saferank.reporting.figures.panels import drawing, write_figure
from saferank.reporting.looks import FAINT, INK, looks_of, policy_name
from saferank.verbs import click

FOLDER = Path(__file__).parents[1] / "docs" / "images"
sys.path.insert(0, str(Path(__file__).with_name("policies")))
RULES = {"safe-draw": "anytime:1e-5", "kl-ucb-br": "paper:1e-5", "bubble-rank": "paper:1e-5"}
POSITIONS, ROUNDS, REPETITIONS, SEED = 5, 100_000, 5, 11
BEST_TO_WORST = ["#00695c", "#2a9d8f", "#8ab17d", "#e9b44c", "#e76f51", *["#9aa0a6"] * 20]
"""The five best items have a colour each, the others are grey."""

PICTURES: dict[str, Callable[[], None]] = {}


def picture(function: Callable[[], None]) -> Callable[[], None]:
    """Offer a picture under the name of its function."""
    PICTURES[function.__name__] = function
    return function


def new_figure(width: float, height: float, panels: int) -> tuple[Figure, Sequence[Axes]]:
    """Panels side by side."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    made: Any = figure.subplots(1, panels, squeeze=False)
    for axes in made[0]:
        plain(axes)
    return figure, list(made[0])


def plain(axes: Axes) -> None:
    """Two thin axes, no frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, which="both", color=FAINT)
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)


def write(figure: Figure, name: str) -> None:
    """Write a picture of the documentation."""
    write_figure(figure, FOLDER / f"{name}.svg")
    shorten(FOLDER / f"{name}.svg")


def shorten(file: Path) -> None:
    """Keep tenths of a point, which are enough: half the size."""
    drawn = re.sub(r' d="[^"]+"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), file.read_text(encoding="utf-8"))
    file.write_text(drawn, encoding="utf-8")
    print(f"docs/images/{file.name}", flush=True)


# --- policies: one run from inside, and all of them beside each other ---


@picture
def policies() -> None:
    """For every policy: what pages are drawn around, in one run; clicks lost so far on all embedded queries."""
    names = [name for name, kind in POLICIES.items() if kind.policy.__module__.startswith("saferank.")]
    curves = {name: lost_clicks(name) for name in names}
    for name in names:
        with drawing():
            figure, (left, right) = new_figure(7.6, 3.1, 2)
            draw_leader(left, name)
            draw_regret(right, name, curves)
        write(figure, f"policy-{name}")


def lost_clicks(policy: str) -> tuple[Any, Any, float]:
    """Rounds, mean regret and violations a run, over the embedded queries under PBM."""
    results = simulate(
        embedded_instances(models=("pbm",)), [policy], positions=POSITIONS, rounds=ROUNDS, repetitions=REPETITIONS,
        rule=RULES.get(policy, "anytime:1e-5"), seed=SEED, progress=False,
    )  # fmt: skip
    runs = results.to_polars()
    found = runs.group_by("round").agg(pl.col("regret", "violations").mean()).sort("round")
    return found["round"].to_numpy(), found["regret"].to_numpy(), float(found["violations"][-1])


def draw_regret(axes: Axes, policy: str, curves: dict[str, tuple[Any, Any, float]]) -> None:
    """All policies in grey, one in its colour."""
    for name, (rounds, regret, _) in curves.items():
        axes.plot(rounds, regret, color=FAINT, linewidth=1.2, zorder=1)
        if name in ("original", "safe-draw", "kl-ucb-br") and name != policy:
            axes.annotate(
                policy_name(name), (rounds[-1], regret[-1]), (4, 0), textcoords="offset points", va="center",
                color="#6b7280", fontsize=7,
            )  # fmt: skip
    rounds, regret, violations = curves[policy]
    axes.plot(rounds, regret, color=looks_of([policy])[policy].colour, linewidth=2.2, zorder=3)
    axes.set(xscale="log", yscale="log", xlim=(100, ROUNDS), ylim=(5, 4e4))
    axes.set(xlabel="pages", title=f"Clicks lost so far; violations a run: {violations:,.0f}")
    axes.title.set_fontsize(9)


def draw_leader(axes: Axes, policy: str) -> None:
    """Which item stands where in the order that pages are drawn around: the working order, or else the leader.

    One run, on the first embedded query that is neither best nor worst.
    """
    instance = embedded_instances(models=("pbm",))[2]
    attraction, examination = instance.model.attraction, np.array(instance.examination)
    by_attraction = np.argsort(-attraction, kind="stable")
    ranks = {int(item): rank for rank, item in enumerate(by_attraction)}
    pages = np.unique(np.geomspace(1, ROUNDS, 240).astype(int))
    places = np.full((len(pages), len(attraction)), POSITIONS + 1.0)
    chance = np.random.default_rng(SEED)
    ranker = live_ranker(policy, len(attraction), instance.examination)
    sampled = 0
    for number in range(1, ROUNDS + 1):
        if number == pages[sampled]:
            for place, item in enumerate(ranker.explain().working or ranker.leader):
                places[sampled, int(item)] = place + 1
            sampled += 1
        page = ranker.rank()
        looked = chance.random(POSITIONS) < examination[:POSITIONS] * attraction[list(page.items)]
        ranker.feedback(page, [item for item, clicked in zip(page.items, looked, strict=True) if clicked])
    for item, rank in sorted(ranks.items(), key=lambda pair: -pair[1]):
        shown = np.where(places[:, item] <= POSITIONS, places[:, item], np.nan)
        axes.step(pages, shown, where="post", color=BEST_TO_WORST[rank], linewidth=3.2 if rank < POSITIONS else 1.6)
        if places[-1, item] <= POSITIONS:
            axes.annotate(
                f"{rank + 1}", (pages[-1], places[-1, item]), (5, 0), textcoords="offset points", va="center",
                color=BEST_TO_WORST[rank], fontweight="bold",
            )  # fmt: skip
    axes.set(xscale="log", xlim=(1, ROUNDS), ylim=(POSITIONS + 0.5, 0.5), yticks=range(1, POSITIONS + 1))
    order = "working order" if ranker.explain().working else "leader"
    axes.set(xlabel="pages", ylabel=f"place in the {order}", title=f"Items of the {order}; 1 is the most attractive")
    axes.title.set_fontsize(9)


def live_ranker(policy: str, items: int, examination: Any) -> Ranker:
    """A ranker of ten items; the two policies that must know the examination are told it."""
    names = range(items)
    return Ranker(
        policy,
        original=names[:POSITIONS],
        candidates=names[POSITIONS:],
        rule=RULES.get(policy, "paper:1e-5"),
        seed=SEED,
        examination=list(examination[:POSITIONS]) if policy.startswith("pbm-") else None,
    )


# --- the start: what visitors see ---


LIKES = {"desk": 0.10, "floor": 0.15, "wall": 0.05, "clip": 0.30, "neon": 0.02}
"""The example of the README: how likely a visitor clicks each lamp."""
LAMPS = {"desk": "Desk lamp", "floor": "Floor lamp", "wall": "Wall lamp", "clip": "Clip lamp", "neon": "Neon sign"}
VISITORS = 2000


@picture
def pages() -> None:
    """The pages of the README's example: production's, one while it learns, the usual one at the end."""
    chance = random.Random(7)
    original: tuple[Any, ...] = ("desk", "floor", "wall")
    ranker = Ranker("safe-draw", original=original, candidates=["clip", "neon"], rule="anytime:1e-5", seed=7)
    trial, number = original, 0
    for visitor in range(1, VISITORS + 1):
        page = ranker.rank()
        if number == 0 and set(page.items) != set(original):
            trial, number = page.items, visitor
        ranker.feedback(page, [item for item in page.items if chance.random() < LIKES[str(item)]])
    final = ranker.explain().working or original
    columns = [
        ("Your page", "before", original),
        (f"Visitor {number}", "one new lamp is tried", trial),
        (f"After {VISITORS:,} visitors", "what pages are drawn around", final),
    ]
    words = "Three pages of a lamp shop: " + "; ".join(
        f"{title}: {', '.join(map(str, items))}" for title, _, items in columns
    )
    wide = [_column(20 + 310 * place, *column, original) for place, column in enumerate(columns)]
    _write_drawing("pages", 940, 330, words, wide)
    narrow = [_narrow_column(4 + 120 * place, *column, original) for place, column in enumerate(columns)]
    _write_drawing("pages-narrow", 360, 190, words, narrow)


def _write_drawing(name: str, width: int, height: int, words: str, parts: Sequence[str]) -> None:
    (FOLDER / f"{name}.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{words}" '
        'font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif">\n'
        '<rect width="100%" height="100%" rx="10" fill="#ffffff"/>\n' + "\n".join(parts) + "\n</svg>\n",
        encoding="utf-8",
    )
    print(f"docs/images/{name}.svg", flush=True)


def _column(x: int, title: str, about: str, items: Sequence[Any], before: Sequence[Any]) -> str:
    """A page as a list of lamps: new ones green, those that moved yellow."""
    drawn = [
        _text(x, 36, 19, "#0f766e", title, "600"),
        _text(x, 59, 14, "#52606d", about),
        _text(x, 305, 15, "#1f2933", f"{_clicks(items):.0f} clicks in 100 visits, on average", "600"),
    ]
    for place, item in enumerate(items):
        y = 78 + 68 * place
        drawn.append(_box(x, y, 280, 58, *_colours(place, item, before)))
        drawn.append(_text(x + 16, y + 26, 16, "#1f2933", f"{place + 1}  {LAMPS[item]}", "600"))
        drawn.append(_text(x + 16, y + 46, 13, "#52606d", f"clicked by {100 * LIKES[item]:.0f} of 100 visitors"))
    return "\n".join(drawn)


def _narrow_column(x: int, title: str, _: str, items: Sequence[Any], before: Sequence[Any]) -> str:
    """The same page in the width of a phone: without the clicks of single lamps."""
    drawn = [
        _text(x, 22, 13, "#0f766e", title.removesuffix(" visitors"), "600"),
        _text(x, 163, 12, "#1f2933", f"{_clicks(items):.0f} clicks", "600"),
        _text(x, 179, 12, "#52606d", "in 100 visits"),
    ]
    for place, item in enumerate(items):
        y = 34 + 38 * place
        drawn.append(_box(x, y, 112, 32, *_colours(place, item, before)))
        drawn.append(_text(x + 8, y + 21, 13, "#1f2933", f"{place + 1} {LAMPS[item]}", "600"))
    return "\n".join(drawn)


def _clicks(items: Sequence[Any]) -> float:
    return 100 * sum(LIKES[item] for item in items)


def _colours(place: int, item: Any, before: Sequence[Any]) -> tuple[str, str]:
    """Ground and edge of a lamp."""
    if item not in before:
        return "#ccfbf1", "#0f766e"
    if before.index(item) != place:
        return "#fef3c7", "#b45309"
    return "#f1f5f9", "#94a3b8"


def _box(x: int, y: int, width: int, height: int, fill: str, edge: str) -> str:
    size = f'width="{width}" height="{height}"'
    return f'<rect x="{x}" y="{y}" {size} rx="8" fill="{fill}" stroke="{edge}" stroke-width="1.5"/>'


def _text(x: int, y: int, size: int, colour: str, text: str, weight: str = "400") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" font-weight="{weight}">{text}</text>'


# --- decision rules, click models ---


@picture
def rules() -> None:
    """The lead that decides a pair, by the number of comparisons."""
    numbers = np.arange(1, 2001)
    drawn = {
        "paper:1e-5": ("#d9730d", "-"),
        "anytime:1e-5": ("#b0126f", "-"),
        "anytime:1e-3": ("#b0126f", (0, (5, 2))),
    }
    with drawing():
        figure, (axes,) = new_figure(5.4, 3.2, 1)
        axes.plot(numbers, numbers, color=FAINT, linewidth=1)
        axes.annotate("all comparisons won", (34, 38), color="#6b7280", fontsize=7, rotation=47)
        for name, (colour, style) in drawn.items():
            rule = decision_rule(name)
            leads = [next((s for s in range(n % 2, n + 1, 2) if rule.decides(s, n)), np.nan) for n in numbers.tolist()]
            axes.plot(numbers, leads, color=colour, linestyle=style, linewidth=2, label=name)
        axes.set(xscale="log", yscale="log", xlim=(10, 2000), ylim=(10, 500))
        axes.set(
            xlabel="comparisons of the pair", ylabel="lead that decides it", title="Wins minus losses that are enough"
        )
        axes.legend(frameon=False, labelcolor=INK)
    write(figure, "decision-rules")


@picture
def click_models() -> None:
    """Clicks by position of one embedded query under every click model, simulated."""
    with drawing():
        figure, (axes,) = new_figure(5.4, 3.2, 1)
        for number, name in enumerate(CLICK_MODELS):
            (instance,) = embedded_instances(1, models=(name,))
            rates = click_rates(instance.model)
            colour = ["#d9730d", "#b0126f", "#00695c", "#1f6fb2", "#7a5195", "#6b7280"][number]
            axes.plot(range(1, len(rates) + 1), rates, marker="o", markersize=4, color=colour, label=name.upper())
        axes.set(xlabel="position", ylabel="clicks a page", ylim=(0, None), xticks=range(1, 11))
        axes.set_title("Clicks by position, production's ranking of one query")
        axes.legend(frameon=False, labelcolor=INK, ncols=2)
    write(figure, "click-models")


def click_rates(model: Any) -> Any:
    """The share of 20,000 simulated pages on which each position was clicked."""
    rng, items, n_pages = stream(SEED), np.arange(len(model.attraction), dtype=np.uint32), 20_000
    clicks, total = np.zeros(len(items), np.int64), np.zeros(len(items))
    for _ in range(n_pages):
        click(model, items, rng, clicks)
        total += clicks
    return total / n_pages


# --- commands ---


@picture
def demo() -> None:
    """The first figure of the report of ``make demo``."""
    with tempfile.TemporaryDirectory() as folder:
        reproduce(Path(folder) / "demo", overwrite=True, progress=False)
        (drawn,) = Path(folder).rglob("all-queries.svg")
        shutil.copyfile(drawn, FOLDER / "demo.svg")
    shorten(FOLDER / "demo.svg")


# --- what `make figures` has measured ---


@picture
def forecast() -> None:
    """The forecast of docs/engineers/forecast.md."""
    write(weeks_figure(figures_of("forecast")), "forecast")


@picture
def model_wrong() -> None:
    """Policies that are made for one click model, under six."""
    from model_wrong import drawn

    with drawing():
        figure = drawn(figures_of("model_wrong"))
    write(figure, "model-wrong")


def figures_of(name: str) -> Any:
    """A measurement in docs/reference/figures.json."""
    return json.loads((FOLDER.parent / "reference" / "figures.json").read_text(encoding="utf-8"))[name]["measured"]


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures: " + ", ".join(PICTURES))
    names = parser.parse_args().names or list(PICTURES)
    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        parser.error(f"unknown picture {unknown[0]!r}; known ones: {', '.join(PICTURES)}")
    for name in names:
        PICTURES[name]()


if __name__ == "__main__":
    main()
