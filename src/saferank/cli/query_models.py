"""From a log to the click models of its most frequent queries, for ``saferank reproduce``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from saferank.cli import estimates
from saferank.cli.errors import writing
from saferank.cli.file_progress import SESSIONS, file_meter
from saferank.datasets.sessions import RANKING_LENGTH
from saferank.fitting.export import instances_of
from saferank.instances import Instance
from saferank.reproduction.outcome import log_facts
from saferank.reproduction.parts import with_items
from saferank.reproduction.planted import LOG_FORMAT, write_planted_log
from saferank.reproduction.protocol import Protocol

if TYPE_CHECKING:
    from saferank.cli.reproduction import Order


def fitted_instances(order: "Order", protocol: Protocol) -> tuple[list[Instance], str, dict[str, Any]]:
    """The instances of the log's most frequent queries, a line about them, and what was in the log."""
    path = _planted(order, protocol) if order.log is None else order.log
    asked = _as_for_fit(order, protocol, path)
    log = estimates.read(asked)
    models = {name: estimates.fit(name, log, asked).model for name in protocol.models}
    cut = [with_items(instance, range(protocol.items)) for instance in instances_of(log, models)]
    _say_if_fewer(len(cut) // len(models), protocol.sizes.queries, path)
    about = f"estimated by saferank reproduce from {path.name}, {protocol.iterations} iterations"
    return cut, about, log_facts(log.summary, path.name, synthetic=order.log is None)


def _say_if_fewer(found: int, wanted: int, log: Path) -> None:
    if found < wanted:
        have = f"{found} queries have a page of {RANKING_LENGTH} items"
        typer.echo(f"{log}: {have}, not {wanted}; all of them are taken", err=True)


def _planted(order: "Order", protocol: Protocol) -> Path:
    sizes = protocol.sizes
    with writing(f"--out {order.out}"), file_meter(sizes.sessions, SESSIONS) as meter:
        return write_planted_log(order.out, sizes.queries, sizes.sessions, protocol.seed, meter)[0]


def _as_for_fit(order: "Order", protocol: Protocol, log: Path) -> estimates.Order:
    return estimates.Order(
        log=log,
        form=order.form or LOG_FORMAT,
        out=order.out,
        models=None,
        queries=protocol.sizes.queries,
        evaluate=None,
        iterations=protocol.iterations,
        replicates=0,
        seed=protocol.seed,
        max_bad=order.max_bad,
    )
