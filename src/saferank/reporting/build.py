"""A report from results alone: read, judge, draw, write."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from saferank.errors import ArgumentError
from saferank.files import write_atomically
from saferank.reporting import latex, page
from saferank.reporting.claims import ALL, HOLDS, SAFE, Claim, NotRun, Place, judge_claims, places_of
from saferank.reporting.data import data_of, fits_of
from saferank.reporting.figures.panels import USUAL, FigureOptions
from saferank.reporting.looks import PAPER_MODELS, labels, policy_name
from saferank.reporting.numbers import counted
from saferank.reporting.reading import ALL_ALIKE, Run, Selection, read_checked, read_run
from saferank.reporting.readings import OtherReading, explain, headline, readings_of
from saferank.reporting.runs import Key, runs_of
from saferank.reporting.sections import (
    FIGURES,
    Studio,
    by_query_section,
    figure_sections,
    link,
    model_study_section,
    study_section,
)
from saferank.reporting.sensitivity import one_rule, sensitivity_tables
from saferank.reporting.spread import ORIGINAL, click_tables, finding, spreads
from saferank.reporting.study import StudyPair, findings, model_study_of, study_pairs
from saferank.simulation.runs import Runs

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
        last, first = min(result.rounds[-1] for result in run.results), self.figures.first_round
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

    @property
    def headline(self) -> str:
        """How many claims of the paper hold, and on which data."""
        of_paper = [claim for claim in self.claims if claim.of_the_paper]
        return headline(of_paper, self.data, sum(claim.of_the_paper for claim in self.not_run))

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
    places = places_of(run, choices.special)
    data = data_of(run)
    claims, not_run = judge_claims(places)
    companions = {name: _companion(run, name) for name in ("sensitivity", "study")}
    runs, wrong_model = runs_of(run), model_study_of(run, choices.model_study)
    explanations = _explanations(run, places, claims, companions["sensitivity"])
    fits = fits_of(run)
    weaknesses = [
        (fit.weakness, sum(claim.model == fit.model and claim.verdict == HOLDS for claim in claims))
        for fit in fits.values()
        if fit.weakness
    ]
    out.mkdir(parents=True, exist_ok=True)
    studio = Studio(out, data.name, choices.figures)
    beside = [each.path for each in (*companions.values(), wrong_model) if not isinstance(each, str)]
    content = {
        "title": f"{TITLE}: its experiment on {data.name}",
        "subtitle": page.subtitle(run, places[ALL], data),
        "overview": page.overview(run, places[ALL], claims, not_run, explanations, data),
        "fits": fits,
        "weaknesses": weaknesses,
        "one_rule": one_rule(run, companions["sensitivity"]),
        "figures": figure_sections(places, studio, run.results[0].positions),
        "by_query": _by_query(run, runs, studio),
        "clicks": _clicks(run, runs),
        "claims": page.claims_content(claims, not_run),
        "sensitivity": _sensitivity(run, companions["sensitivity"], choices.without, places),
        "study": _study(run, companions["study"], out),
        "model_study": _model_study(wrong_model, studio),
    }
    tables = _tables(run, places[ALL], claims, not_run, content, studio)
    files = dict.fromkeys([run.path, *beside])
    text = page.render(**content, provenance=page.provenance_content(run, list(files), tables, out))
    write_atomically(out / PAGE, text)
    return Report(out / PAGE, claims, not_run, data.name, [sentence for sentence, _ in weaknesses])


def _companion(run: Run, name: str) -> Run | str:
    """A results file beside the main one, or why there is none."""
    file = run.reproduction.get(name)
    if not isinstance(file, str) or Path(file).name != file:
        return "These results name no such runs; saferank reproduce makes them."
    path = run.path.parent / file
    if not path.is_file():
        return f"{file} is not beside {run.path.name}; put it back, or run saferank reproduce."
    return read_checked(path)


def _rule(run: Run) -> str | None:
    """The decision rule of the run."""
    rules = [result.rule for result in run.results if result.rule]
    named = run.reproduction.get("rule")
    return named if isinstance(named, str) else rules[0] if rules else None


def _explanations(
    run: Run, places: Mapping[str, Place], claims: Sequence[Claim], companion: Run | str
) -> list[OtherReading]:
    """Readings of the paper under which claims that do not hold would hold."""
    if isinstance(companion, str):
        return []
    readings = readings_of(places, companion.results, _rule(run))
    return explain([claim for claim in claims if claim.of_the_paper], places, readings)


def _sensitivity(
    run: Run, companion: Run | str, without: Collection[str], places: Mapping[str, Place]
) -> dict[str, Any]:
    if isinstance(companion, str):
        return {"reason": companion, "tables": [], "models": []}
    kept = [result for result in companion.results if result.policy.partition(":")[0] not in without]
    part = Run(companion.path, kept, companion.provenance)
    tables = sensitivity_tables(part, _rule(run), run.results, places) if kept else []
    return {"reason": None if tables else "There is nothing to compare.", "tables": tables, "models": part.models}


def _by_query(run: Run, runs: dict[Key, Runs] | str, studio: Studio) -> dict[str, Any]:
    """Every policy beside OriginalRank on every query."""
    found = spreads(run.results, None if isinstance(runs, str) else runs)
    if not found:
        return {"reason": f"There are no results of another policy beside {policy_name(ORIGINAL)}.", "figure": None}
    ordered = {model: found[model] for model in run.models if model in found}
    return {
        "reason": None,
        "figure": by_query_section(ordered, studio),
        "original": policy_name(ORIGINAL),
        "spreads": ordered,
        "finding": finding(ordered, [policy for policy in run.policies if policy in SAFE]),
        "no_runs": runs if isinstance(runs, str) else None,
    }


def _clicks(run: Run, runs: dict[Key, Runs] | str) -> dict[str, Any]:
    """Clicks relative to the original's, where single runs are there."""
    if isinstance(runs, str):
        return {"reason": runs, "tables": []}
    return {"reason": None, "tables": click_tables(runs, run.models, run.policies)}


def _model_study(study: Any, studio: Studio) -> dict[str, Any]:
    if isinstance(study, str):
        return {"reason": study, "figure": None}
    return {
        "reason": None,
        "figure": model_study_section(study, studio),
        "findings": findings(study),
        "study": study,
        "address": link(study.path, studio.out),
    }


def _tables(
    run: Run,
    place: Place,
    claims: Sequence[Claim],
    not_run: Sequence[NotRun],
    content: Mapping[str, Any],
    studio: Studio,
) -> list[Path]:
    """The tables as LaTeX beside the figures."""
    end = f"after {run.results[0].rounds[-1]:,} rounds, on {studio.data}"
    made = {"endings": latex.endings_table(content["overview"]["endings"], run.models, f"Regret and violations {end}")}
    judged = [model for model in PAPER_MODELS if any(claim.model == model for claim in claims)]
    if judged:
        made["claims"] = latex.claims_table(claims, not_run, judged, f"Claims of the paper, {end}")
    for table in content["one_rule"]["tables"]:
        about = f"At the rule {table.rule}, {counted(table.queries, 'query', 'queries')}, {end}"
        made["one-rule"] = latex.endings_table(table.rows, run.models, about)
    if content["by_query"]["figure"]:
        made["by-query"] = latex.by_query_table(content["by_query"]["spreads"], f"Query by query, {end}")
    if content["clicks"]["tables"]:
        about = f"Expected clicks relative to the original's: mean of all runs (lowest run), on {studio.data}"
        made["clicks"] = latex.clicks_table(content["clicks"]["tables"], about)
    return latex.write_tables(studio.out / FIGURES, made)


def _study(run: Run, companion: Run | str, out: Path) -> dict[str, Any]:
    if isinstance(companion, str):
        return {"reason": companion, "figure": None}
    named = run.reproduction.get("study_sets")
    sets = study_pairs(companion, named if isinstance(named, dict) else {})
    if not sets:
        return {"reason": f"{companion.path.name} has no policy with both rules on the same queries.", "figure": None}
    return {
        "reason": None,
        "sets": sets,
        "figure": study_section(sets, out),
        "finding": _finding(sets),
        "same_level": all(pair.same_level for pairs in sets.values() for pair in pairs),
    }


def _finding(sets: Mapping[str, Sequence[StudyPair]]) -> str:
    """The study in two sentences."""
    pairs = [pair for of_set in sets.values() for pair in of_set]
    shares = sorted(pair.ratio.mean for pair in pairs if pair.ratio is not None)
    outcomes = [outcome for pair in pairs for outcome in (pair.paper, pair.anytime)]
    clean = all(outcome.violations.mean == 0 and not outcome.wrong_certificates for outcome in outcomes)
    safety = (
        "No run violated safety or decided a pair wrongly." if clean else "Not every run was free of errors: see below."
    )
    if not shares:
        return safety
    span = (
        f"{shares[0]:.2f}"
        if f"{shares[0]:.2f}" == f"{shares[-1]:.2f}"
        else f"between {shares[0]:.2f} and {shares[-1]:.2f}"
    )
    return (
        f"With the anytime rule regret ends at {span} times that with the paper rule, depending on the users. {safety}"
    )
