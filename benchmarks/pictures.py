"""Draw the pictures of the documentation: SVG, one style, real runs with fixed seeds.

    make pictures                            # all of them
    python benchmarks/pictures.py policies rules   # some

A picture is a function of this file. The ground is white, so that it can be read on a dark page, too.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from saferank import Ranker, embedded_instances, simulate
from saferank.policies import POLICIES
from saferank.reporting.figures.panels import drawing, write_figure
from saferank.reporting.looks import FAINT, INK, looks_of, policy_name

FOLDER = Path(__file__).parents[1] / "docs" / "images"
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
    file = FOLDER / f"{name}.svg"
    write_figure(figure, file)
    drawn = re.sub(r' d="[^"]+"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), file.read_text(encoding="utf-8"))
    file.write_text(drawn, encoding="utf-8")  # a tenth of a point is enough, and half the size
    print(f"docs/images/{name}.svg", flush=True)


# --- policies: one run from inside, and all of them beside each other ---


@picture
def policies() -> None:
    """For every policy: the leader of one run, page by page; clicks lost so far on all embedded queries."""
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
    """Which item stands where in the leader, in one run on the first embedded query that is neither best nor worst."""
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
    axes.set(xlabel="pages", ylabel="place in the leader", title="Items of the leader; 1 is the most attractive")
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
