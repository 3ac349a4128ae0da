"""A report from results alone: read, judge, draw, write."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saferank.json_files import write_atomically
from saferank.report import page
from saferank.report.claims import Claim, NotRun, judge_claims
from saferank.report.places import ALL, places_of
from saferank.report.reading import Run, read_checked, read_run
from saferank.report.sections import figure_sections, study_section
from saferank.report.sensitivity import Row, sensitivity_rows
from saferank.report.study import Pair, study_pairs

PAGE = "report.html"


@dataclass(frozen=True)
class Report:
    """What was made: the page, and the claims with their verdicts."""

    page: Path
    claims: list[Claim]
    not_run: list[NotRun]


def build_report(
    results: Path, out: Path, *, without: Collection[str] = (), special: Mapping[str, str] | None = None
) -> Report:
    """Write the page and the figures of a results file into ``out``, which is made if need be."""
    run = read_run(results, without)
    places = places_of(run, special or {})
    claims, not_run = judge_claims(places)
    companions = {name: _companion(run, name) for name in ("sensitivity", "study")}
    out.mkdir(parents=True, exist_ok=True)
    data = [run.path, *(companion.path for companion in companions.values() if isinstance(companion, Run))]
    text = page.render(
        title="Exploration of unranked items in safe online learning to re-rank",
        subtitle=page.subtitle(run, places[ALL]),
        overview=page.overview(run, places[ALL], claims),
        figures=figure_sections(places, out, run.results[0].positions),
        claims=page.claims_content(claims, not_run),
        sensitivity=_sensitivity(run, companions["sensitivity"], without),
        study=_study(run, companions["study"], out),
        provenance=page.provenance_content(run, data, out),
    )
    write_atomically(out / PAGE, text)
    return Report(out / PAGE, claims, not_run)


def _companion(run: Run, name: str) -> Run | str:
    """A results file beside the main one, or why there is none."""
    file = run.reproduction.get(name)
    if not isinstance(file, str) or Path(file).name != file:
        return "These results name no such runs; saferank reproduce makes them."
    path = run.path.parent / file
    if not path.is_file():
        return f"{file} is not beside {run.path.name}; put it back, or run saferank reproduce."
    return read_checked(path)


def _sensitivity(run: Run, companion: Run | str, without: Collection[str]) -> dict[str, Any]:
    if isinstance(companion, str):
        return {"reason": companion, "rows": [], "models": []}
    kept = [result for result in companion.results if result.policy.partition(":")[0] not in without]
    rules = [result.rule for result in run.results if result.rule]
    default = run.reproduction.get("rule") or (rules[0] if rules else None)
    part = Run(companion.path, kept, companion.provenance)
    rows: list[Row] = sensitivity_rows(part, default, run.results) if kept else []
    return {"reason": None if rows else "There is nothing to compare.", "rows": rows, "models": part.models}


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


def _finding(sets: Mapping[str, Sequence[Pair]]) -> str:
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
