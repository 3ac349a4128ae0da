"""The figures of the page with their captions, and for those that cannot be drawn a sentence that says why."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from matplotlib.figure import Figure

from saferank.reporting.claims import ALL, NONE_OF_BEST, OPTIMAL, Place, final_regret, final_violations
from saferank.reporting.figures.by_query import by_query_figure
from saferank.reporting.figures.curves import curves_figure
from saferank.reporting.figures.panels import USUAL, FigureOptions, inline_svg, write_formats
from saferank.reporting.figures.study import model_study_figure, study_figure
from saferank.reporting.looks import curve_name, model_name, policy_name
from saferank.reporting.pooling import Pooled
from saferank.reporting.spread import ORIGINAL, Spread
from saferank.reporting.study import ModelStudy, StudyPair

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


@dataclass(frozen=True)
class Studio:
    """Where figures are drawn, how, and the name of the data for their captions."""

    out: Path
    data: str
    options: FigureOptions = USUAL


def figure_sections(places: Mapping[str, Place], studio: Studio, positions: int) -> list[Section]:
    """The paper's three figures."""
    titles = {
        ALL: "All queries",
        OPTIMAL: "A query whose original ranking is optimal",
        NONE_OF_BEST: f"A query whose original ranking holds none of the best {positions}",
    }
    return [_section(key, title, places.get(key), studio) for key, title in titles.items()]


def _section(key: str, title: str, place: Place | None, studio: Studio) -> Section:
    if place is None:
        option = "--optimal ID" if key == OPTIMAL else "--none-of-best ID"
        return Section(
            key,
            title,
            "Left out: the results do not say which query that is. saferank reproduce finds one; for other results "
            f"name one with saferank report {option}.",
        )
    if not place.proper:
        return Section(
            key, title, f"Left out: no query is like that. The nearest is query {place.instance}: {_lapses(place)}."
        )
    files = write_figure_files(curves_figure(place.proper, studio.options), studio.out, _STEMS[key])
    options = replace(studio.options, columns=None)  # the page sets the width of its own pictures
    by_model: dict[str, list[Pooled]] = {}
    for curve in place.proper:
        by_model.setdefault(curve.model, []).append(curve)
    pictures = [_picture(curves, f"{key}-{n}", options) for n, curves in enumerate(by_model.values())]
    return Section(key, title, _caption(place, studio), pictures, files)


def _lapses(place: Place) -> str:
    """How near a query comes that is not quite what the paper looks at."""
    return ", ".join(f"under {model_name(model)} it has {has}" for model, has in place.lapses.items())


def by_query_section(found: Mapping[str, Sequence[Spread]], studio: Studio) -> Section:
    """Queries as dots."""
    original = policy_name(ORIGINAL)
    files = write_figure_files(by_query_figure(found, studio.options), studio.out, "by-query")
    pictures = [
        Picture(inline_svg(by_query_figure({model: spreads}), f"by-query-{n}"), _by_query_words(model, spreads))
        for n, (model, spreads) in enumerate(found.items())
    ]
    caption = (
        f"Regret of each policy on each query at the last round, as a share of {original}'s on the same query; each "
        f"dot is a query, sorted. Dots on the shaded side are queries on which the policy has more regret than showing "
        f"the original ranking forever. Triangles at the edge lie beyond it; there {original} has no regret, or "
        f"hardly any. Data: {studio.data}."
    )
    return Section("by_query", "Query by query", caption, pictures, files)


def _by_query_words(model: str, spreads: Sequence[Spread]) -> str:
    each = "; ".join(f"{spread.name} {spread.counts}, median share {spread.median}" for spread in spreads)
    return (
        f"{model_name(model)}. Queries on which a policy is better than {policy_name(ORIGINAL)}, equal, worse: {each}."
    )


def model_study_section(study: ModelStudy, studio: Studio) -> Section:
    """Policies under their own click model and under others."""
    files = write_figure_files(model_study_figure(study, studio.options), studio.out, "model-study")
    pictures = [
        Picture(inline_svg(model_study_figure(study, measures=(m,)), f"model-study-{m}"), _model_study_words(study, m))
        for m in ("regret", "violations")
    ]
    caption = (
        f"Regret and violations a run at {study.rounds:,} rounds. A ring marks a policy under the "
        f"click model for which it was made. Bars are standard errors across queries. Data: {study.data}."
    )
    return Section("model_study", "When the model is wrong", caption, pictures, files)


def _model_study_words(study: ModelStudy, measure: str) -> str:
    rows = (
        f"{name}: " + ", ".join(f"{model_name(m)} {text}" for m, (text, _) in zip(study.models, cells, strict=True))
        for name, cells in study.rows(measure)
    )
    return f"{measure.capitalize()} by click model. {'; '.join(rows)}."


def study_section(sets: Mapping[str, Sequence[StudyPair]], out: Path) -> Section:
    """The study's figure, drawn into ``out``."""
    files = write_figure_files(study_figure(sets), out, "study")
    pictures = [
        Picture(inline_svg(study_figure({name: pairs}), f"study-{n}"), _study_words(name, pairs))
        for n, (name, pairs) in enumerate(sets.items())
    ]
    caption = "Regret at the end under either rule; bars reach two standard errors to either side. The set "
    caption += "called embedded comes with saferank and is synthetic."
    return Section("study", "Paper rule and anytime rule", caption, pictures, files)


def link(path: Path, out: Path) -> str:
    """A relative address of a file for a page in ``out``."""
    return quote(Path(os.path.relpath(path, out)).as_posix())


def write_figure_files(figure: Figure, out: Path, stem: str) -> list[tuple[str, str]]:
    """Write a figure in every format into the folder of figures; returns formats and addresses."""
    folder = out / FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    return [(path.suffix[1:].upper(), link(path, out)) for path in write_formats(figure, folder, stem)]


def _picture(curves: list[Pooled], identity: str, options: FigureOptions) -> Picture:
    regret = ", ".join(f"{curve_name(curve.policy)} {final_regret(curve)}" for curve in curves)
    violations = ", ".join(f"{curve_name(curve.policy)} {final_violations(curve)}" for curve in curves)
    end = f"{curves[0].rounds[-1]:,}"
    words = f"{model_name(curves[0].model)}. Cumulative expected regret after {end} rounds: {regret}. "
    return Picture(
        inline_svg(curves_figure(curves, options), identity), f"{words}Safety violations a run: {violations}."
    )


def _study_words(name: str, pairs: Sequence[StudyPair]) -> str:
    each = ", ".join(f"{p.model} {p.paper.regret} with the paper rule, {p.anytime.regret} anytime" for p in pairs)
    return f"{name}. Regret: {each}."


def _caption(place: Place, studio: Studio) -> str:
    first = place.proper[0]
    if place.key == ALL:
        many = "the mean over 1 query" if first.instances == 1 else f"means over {first.instances:,} queries"
        bands = (
            "bands are one standard error: the errors of the queries' repetitions, added in squares and divided by the "
            "number of queries, because the set of queries is fixed"
        )
        who = f"Curves are {many}; {bands}."
    else:
        left_out = f" Not quite like that, and left out: {_lapses(place)}." if place.lapses else ""
        who = f"Query {place.instance}.{left_out} Bands are one standard error over repetitions."
    return (
        f"Cumulative expected regret (above) and rounds that violate safety (below) by round, up to "
        f"{first.rounds[-1]:,}. {who} {studio.options.words}; curves on the shaded strip are exactly zero. "
        f"Data: {studio.data}."
    )
