"""The figures of the page with their captions, and for those that cannot be drawn a sentence that says why."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from matplotlib.figure import Figure

from saferank.report.claims import final_regret, final_violations
from saferank.report.figure_files import inline_svg, write_formats
from saferank.report.figures import curves_figure
from saferank.report.looks import model_name, policy_name
from saferank.report.places import ALL, NONE_OF_BEST, OPTIMAL, Place
from saferank.report.pooling import Pooled
from saferank.report.study import Pair
from saferank.report.study_figure import study_figure

FIGURES = "figures"
_STEMS = {ALL: "all-queries", OPTIMAL: "optimal-original", NONE_OF_BEST: "none-of-best"}


@dataclass(frozen=True)
class Picture:
    """One part of a figure: its drawing and what it shows in words."""

    svg: str
    words: str


@dataclass(frozen=True)
class Section:
    """A figure as the page shows it; without pictures ``caption`` says why there is none."""

    key: str
    title: str
    caption: str
    pictures: list[Picture] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)


def figure_sections(places: Mapping[str, Place], out: Path, positions: int) -> list[Section]:
    """The paper's three figures, drawn into ``out``."""
    titles = {
        ALL: "All queries",
        OPTIMAL: "A query whose original ranking is optimal",
        NONE_OF_BEST: f"A query whose original ranking holds none of the best {positions}",
    }
    return [_section(key, title, places.get(key), out) for key, title in titles.items()]


def _section(key: str, title: str, place: Place | None, out: Path) -> Section:
    if place is None:
        option = "--optimal ID" if key == OPTIMAL else "--none-of-best ID"
        return Section(
            key,
            title,
            "Left out: the results do not say which query that is. saferank reproduce finds one; for other results "
            f"name one with saferank report {option}.",
        )
    files = _write(curves_figure(place.curves), out, _STEMS[key])
    models = dict.fromkeys(curve.model for curve in place.curves)
    pictures = [_picture([c for c in place.curves if c.model == model], f"{key}-{n}") for n, model in enumerate(models)]
    return Section(key, title, _caption(place), pictures, files)


def study_section(sets: Mapping[str, Sequence[Pair]], out: Path) -> Section:
    """The study's figure, drawn into ``out``."""
    files = _write(study_figure(sets), out, "study")
    pictures = [
        Picture(inline_svg(study_figure({name: pairs}), f"study-{n}"), _study_words(name, pairs))
        for n, (name, pairs) in enumerate(sets.items())
    ]
    caption = "Regret at the end under either rule; bars reach two standard errors to either side."
    return Section("study", "Paper rule and anytime rule", caption, pictures, files)


def link(path: Path, out: Path) -> str:
    """A relative address of a file for a page in ``out``."""
    return quote(Path(os.path.relpath(path, out)).as_posix())


def _write(figure: Figure, out: Path, stem: str) -> list[tuple[str, str]]:
    folder = out / FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    return [(path.suffix[1:].upper(), link(path, out)) for path in write_formats(figure, folder, stem)]


def _picture(curves: list[Pooled], identity: str) -> Picture:
    regret = ", ".join(f"{policy_name(curve.policy)} {final_regret(curve)}" for curve in curves)
    violations = ", ".join(f"{policy_name(curve.policy)} {final_violations(curve)}" for curve in curves)
    end = f"{curves[0].rounds[-1]:,}"
    words = f"{model_name(curves[0].model)}. Cumulative expected regret after {end} rounds: {regret}. "
    return Picture(inline_svg(curves_figure(curves), identity), f"{words}Safety violations a run: {violations}.")


def _study_words(name: str, pairs: Sequence[Pair]) -> str:
    each = ", ".join(f"{p.model} {p.paper.regret} with the paper rule, {p.anytime.regret} anytime" for p in pairs)
    return f"{name}. Regret: {each}."


def _caption(place: Place) -> str:
    first = place.curves[0]
    if place.key == ALL:
        many = "the mean over 1 query" if first.instances == 1 else f"means over {first.instances:,} queries"
        bands = (
            "bands are one standard error: the errors of the queries' repetitions, added in squares and divided by the "
            "number of queries, because the set of queries is fixed"
        )
        who = f"Curves are {many}; {bands}."
    else:
        lapses = ", ".join(f"under {model_name(model)} it has {has}" for model, has in place.lapses.items())
        nearest = f" No query is quite like that, and this is the nearest: {lapses}." if lapses else ""
        who = f"Query {place.instance}.{nearest} Bands are one standard error over repetitions."
    return (
        f"Cumulative expected regret (above) and rounds that violate safety (below) by round, up to "
        f"{first.rounds[-1]:,}. {who} Axes are logarithmic; curves on the shaded strip are exactly zero."
    )
