"""The page: everything that the template shows, and the template filled."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from saferank.reporting.claims import FAILS, HOLDS, UNDECIDED, Claim, NotRun, Place, endings
from saferank.reporting.data import Data, seconds_by_policy, what_was_run
from saferank.reporting.figures.panels import colour_variable
from saferank.reporting.looks import PAPER_MODELS, curve_name, dark_colours, model_name
from saferank.reporting.numbers import counted
from saferank.reporting.reading import Run
from saferank.reporting.readings import OtherReading, claim_tables, headline, in_short, in_standard_errors
from saferank.reporting.sections import link


def render(template: str = "report.html", /, **content: Any) -> str:
    """A page as HTML; whatever comes from results is escaped."""
    environment = Environment(
        loader=PackageLoader("saferank.reporting"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "model": model_name, "drawing": Markup, "errors": in_standard_errors, "in_short": in_short,
    }  # fmt: skip
    environment.globals |= {"light": _colours(dark=False), "dark": _colours(dark=True)}
    page = environment.get_template(template).render(**content)
    return page.encode("utf-8", "replace").decode()


def _colours(*, dark: bool) -> list[tuple[str, str]]:
    return [(colour_variable(light), night if dark else light) for light, night in dark_colours().items()]


def overview(
    run: Run,
    place: Place,
    claims: Sequence[Claim],
    not_run: Sequence[NotRun],
    explanations: Sequence[OtherReading],
    data: Data,
) -> dict[str, Any]:
    """The answer first: how many claims hold on which data, which do not and why, where every algorithm ended."""
    of_paper = [claim for claim in claims if claim.of_the_paper]
    missing = sum(claim.of_the_paper for claim in not_run)
    return {
        "headline": headline(of_paper, data.name, missing),
        "not_run": missing,
        "data": data.detail,
        "explanations": explanations,
        "failing": [claim for claim in of_paper if claim.verdict == FAILS],
        "undecided": [claim for claim in of_paper if claim.verdict == UNDECIDED],
        "count": {
            verdict: sum(claim.verdict == verdict for claim in of_paper) for verdict in (HOLDS, FAILS, UNDECIDED)
        },
        "endings": endings(place.curves, run.policies, run.models, curve_name),
        "models": run.models,
    }


def claims_content(claims: Sequence[Claim], not_run: Sequence[NotRun]) -> dict[str, Any]:
    """The tables of claims: the paper's, then the same questions under other click models."""
    others = list(dict.fromkeys(claim.model for claim in claims if not claim.of_the_paper))
    of_paper = [model for model in PAPER_MODELS if any(claim.model == model for claim in claims)]
    reasons: dict[str, list[str]] = {}
    for claim in not_run:
        if claim.model in PAPER_MODELS:
            reasons.setdefault(claim.reason, []).append(claim.sentence)
    return {
        "groups": [
            (models, tables)
            for models in (of_paper, others)
            if models and (tables := claim_tables(claims, models, not_run))
        ],
        "not_run": reasons,
    }  # fmt: skip


def provenance_content(run: Run, data: Sequence[Path], tables: Sequence[Path], out: Path) -> dict[str, Any]:
    """What was run and the files it left."""
    return {
        "rows": what_was_run(run),
        "seconds": seconds_by_policy(run),
        "data": [(path.name, link(path, out)) for path in data],
        "tables": [(path.name, link(path, out)) for path in tables],
    }


def subtitle(run: Run, place: Place, data: Data) -> list[str]:
    """The data and the size of the run in a few words each."""
    first, queries = run.results[0], place.curves[0].instances
    return [
        f"data: {data.name}",
        counted(queries, "query", "queries"),
        counted(first.repetitions, "repetition"),
        f"{first.rounds[-1]:,} rounds",
        f"{first.positions} of {first.items} items shown",
        ", ".join(model_name(model) for model in run.models),
    ]
