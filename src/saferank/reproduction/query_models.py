"""From a log to the click models of its most frequent queries."""

from pathlib import Path
from typing import Any

from saferank.errors import ArgumentError, writing
from saferank.fitting.export import instances_of
from saferank.fitting.fit import estimate, read_pages
from saferank.instances import Instance
from saferank.progress import SESSIONS, Reporter
from saferank.reproduction.outcome import log_facts
from saferank.reproduction.planted import LOG_FORMAT, write_planted_log
from saferank.reproduction.protocol import Protocol
from saferank.reproduction.request import ReproductionRequest


def fitted_instances(
    request: ReproductionRequest, protocol: Protocol, out: Path, shown: Reporter
) -> tuple[list[Instance], str, dict[str, Any]]:
    """The instances of the log's most frequent queries, a line about them, and what was in the log."""
    path = _planted(protocol, out, shown) if request.log is None else request.log
    form, length = request.form or LOG_FORMAT, protocol.page_length
    log = read_pages(path, form, protocol.sizes.queries, request.max_bad, shown, length)
    models = {name: estimate(name, log, protocol.iterations, shown).model for name in protocol.models}
    pages = {query: len(ranking or ()) for query, ranking in zip(log.queries, log.rankings, strict=True)}
    made = instances_of(log, models, protocol.items)
    cut = [each for each in made if len(each.items) == protocol.items and pages[each.id] >= protocol.positions]
    found, wanted = len(cut) // len(models), protocol.sizes.queries
    have = f"{found} queries have {protocol.items} items and {_a_page(protocol)}"
    if not cut:
        raise ArgumentError("items", f"{path}: {have}; choose fewer items or positions, or another page_length")
    if found < wanted:
        shown.note(f"{path}: {have}, not {wanted}; all of them are taken")
    about = f"estimated by saferank reproduce from {path.name}, {protocol.iterations} iterations"
    return cut, about, log_facts(log.summary, path.name, synthetic=request.log is None)


def _a_page(protocol: Protocol) -> str:
    if protocol.page_length is None:
        return f"a page of at least {protocol.positions}"
    return f"a page of {protocol.page_length}"


def _planted(protocol: Protocol, out: Path, shown: Reporter) -> Path:
    sizes = protocol.sizes
    with writing(out), shown.meter(sizes.sessions, SESSIONS) as meter:
        return write_planted_log(out, sizes.queries, sizes.sessions, protocol.seed, meter)[0]
