"""A report from results alone: read, judge, draw, write."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from saferank.errors import ArgumentError
from saferank.files import write_atomically
from saferank.reporting.claims import ALL, FAILS, HOLDS, UNDECIDED, Claim, NotRun, Place, judge_claims, places_of
from saferank.reporting.data import ModelFit, data_of, fits_of, fits_table, seconds_table, what_was_run
from saferank.reporting.figures.panels import USUAL, FigureOptions
from saferank.reporting.looks import PAPER_MODELS, labels, model_name
from saferank.reporting.numbers import counted
from saferank.reporting.page import render
from saferank.reporting.reading import ALL_ALIKE, Run, Selection, read_run
from saferank.reporting.readings import claims_table, explain, headline, readings_of
from saferank.reporting.sections import FIGURES, Studio, link
from saferank.reporting.sensitivity import sensitivity_section, study_section
from saferank.reporting.spread import by_query_section, clicks_section
from saferank.reporting.study import model_study_of, model_study_section
from saferank.reporting.summary import endings_section, paper_figures, sentences
from saferank.table import TextTable

PAGE = "report.html"
TITLE = "Exploration of unranked items in safe online learning to re-rank"


@dataclass(frozen=True)
class Choices:
    """What a reader may choose, the results aside."""

    without: Collection[str] = ()
    special: Mapping[str, str] = field(default_factory=dict)  # instance ids of the special queries
    figures: FigureOptions = USUAL
    model_study: Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # by policy, instead of their titles
    selection: Selection = ALL_ALIKE  # which combination of a sweep

    def check(self, run: Run) -> None:
        """An ``ArgumentError`` for choices that do not fit the results."""
        for policy in self.names:
            if policy not in run.policies:
                there = ", ".join(run.policies)
                raise ArgumentError("names", f"no results of {policy!r}; there are {there}")
        last, first = run.rounds, self.figures.first_round
        if first is not None and first >= last:
            raise ArgumentError("first_round", f"found {first}, expected less than {last:,}, the last round")


@dataclass(frozen=True, repr=False)
class Report:
    """What was made: the page, and the claims with their verdicts."""

    page: Path
    claims: list[Claim]
    not_run: list[NotRun]
    data: str = "data that the results do not name"
    """What the claims were judged on."""
    weaknesses: Sequence[str] = ()
    """Click models that do not fit the log, in words: claims under them are about other users."""

    def judged(self, *verdicts: str) -> list[Claim]:
        """The claims of the paper with one of these verdicts, or with any."""
        own = [claim for claim in self.claims if claim.of_the_paper]
        return [claim for claim in own if not verdicts or claim.verdict in verdicts]

    def count(self, verdict: str) -> int:
        """How many claims of the paper have this verdict."""
        return len(self.judged(verdict))

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Why claims of the paper were not judged, and which."""
        found: dict[str, list[str]] = {}
        for claim in self.not_run:
            if claim.of_the_paper:
                found.setdefault(claim.reason, []).append(claim.sentence)
        return found

    @property
    def headline(self) -> str:
        """How many claims of the paper hold, and on which data."""
        return headline(self.judged(), self.data, sum(claim.of_the_paper for claim in self.not_run))

    def __repr__(self) -> str:
        return f"Report({str(self.page)!r}): {self.headline}"

    def _repr_html_(self) -> str:
        where = escape(str(self.page))
        return f'<p><a href="{where}">{where}</a>: {escape(self.headline)}</p>'


def build_report(results: Path, out: Path, choices: Choices | None = None) -> Report:
    """Write the page, the figures and the tables of a results file into ``out``, which is made if need be."""
    choices = choices or Choices()
    run = read_run(results, choices.without, choices.selection)
    choices.check(run)
    with labels(choices.names, run.rules):
        return _build(run, out, choices)


def _build(run: Run, out: Path, choices: Choices) -> Report:
    places, data, fits = places_of(run, choices.special), data_of(run), fits_of(run)
    claims, not_run = judge_claims(places)
    sensitivity, study = run.companion("sensitivity"), run.companion("study")
    runs, wrong_model = run.runs(), model_study_of(run, choices.model_study)
    readings = [] if isinstance(sensitivity, str) else readings_of(places, sensitivity.means, run.rule)
    weak = {model: fit.weakness for model, fit in fits.items() if fit.weakness}
    made = Report(out / PAGE, claims, not_run, data.name, list(weak.values()))
    studio = Studio(out, data.name, choices.figures)
    first, *special = paper_figures(places, studio, run.first("positions"), claims, not_run)
    sections = [
        endings_section(run, places[ALL], sensitivity),
        by_query_section(run, runs, studio),
        clicks_section(runs, run.models, run.policies),
        sensitivity_section(run, sensitivity, choices.without, places),
        study_section(run, study),
        model_study_section(wrong_model, studio),
    ]
    judged = _claims(claims, not_run, fits)
    beside = [each.path for each in (sensitivity, study, wrong_model) if not isinstance(each, str)]
    tables = _written([table for section in sections for table in section.tables] + judged[:1], run, studio)
    text = render(
        title=f"{TITLE}: its experiment on {data.name}",
        subtitle=_subtitle(run, places[ALL], data.name),
        made=made,
        data=data.detail,
        answers=sentences(run, places[ALL]),
        figures=[first, *special],
        claims=judged,
        fits=fits_table(fits),
        verdicts=[("Claims that do not hold", made.judged(FAILS)), ("Undecided claims", made.judged(UNDECIDED))],
        explanations=explain(made.judged(), readings),
        weaknesses=[(words, sum((c.model, c.verdict) == (m, HOLDS) for c in claims)) for m, words in weak.items()],
        sections=sections,
        facts=what_was_run(run),
        seconds=seconds_table(run),
        files=[(path.name, link(path, out)) for path in (*dict.fromkeys([run.path, *beside]), *tables)],
    )
    write_atomically(out / PAGE, text)
    return made


def _claims(claims: Sequence[Claim], not_run: Sequence[NotRun], fits: Mapping[str, ModelFit]) -> list[TextTable]:
    """The table of the paper's claims, then the same questions under other click models."""
    weak = {model: f"{fit.cells[1]} of pages impossible" for model, fit in fits.items() if fit.weakness}
    of_paper = [model for model in PAPER_MODELS if any(claim.model == model for claim in claims)]
    others = list(dict.fromkeys(claim.model for claim in claims if not claim.of_the_paper))
    beyond = "The same questions under click models that are not in the paper"
    tables = [claims_table(claims, models, not_run, weak) for models in (of_paper, others) if models]
    return [table if of_paper and table is tables[0] else replace(table, title=beyond) for table in tables]


def _subtitle(run: Run, place: Place, data: str) -> list[str]:
    """The data and the size of the run in a few words each."""
    return [
        f"data: {data}",
        counted(place.curves[0].instances, "query", "queries"),
        counted(run.first("repetitions"), "repetition"),
        f"{run.rounds:,} rounds",
        f"{run.first('positions')} of {run.first('items')} items shown",
        ", ".join(model_name(model) for model in run.models),
    ]


def _written(tables: Sequence[TextTable], run: Run, studio: Studio) -> list[Path]:
    """The tables as LaTeX beside the figures."""
    about = f", after {run.rounds:,} rounds, on {studio.data}"
    paths = {studio.out / FIGURES / f"{table.key}.tex": table for table in tables if table.key}
    for path, table in paths.items():
        write_atomically(path, table.latex(about))
    return list(paths)
