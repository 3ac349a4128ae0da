"""The work behind ``saferank reproduce``: check everything, then log, click models, runs, results, report."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from saferank.cli.console import announce
from saferank.cli.engines import ClusterFailed, compiling, engine_of
from saferank.cli.errors import InputError, Interrupted, OutputError, writing
from saferank.cli.output import output_folder
from saferank.cli.progress import round_meter
from saferank.cli.protocols import facts_asked, protocol_of, study_instances
from saferank.cli.query_models import fitted_instances
from saferank.reproduction.folder import ANEW, Folder, FolderError
from saferank.reproduction.outcome import measured, reproduction_facts, write_outcome
from saferank.reproduction.parts import Parts, parts_of, study_sets
from saferank.reproduction.pieces import Pieces, PiecesError
from saferank.reproduction.protocol import Protocol
from saferank.reproduction.special import special_queries
from saferank.simulation.engine import Engine, simulate
from saferank.simulation.results import provenance


@dataclass(frozen=True)
class Order:
    """What was asked for, as it was typed."""

    profile: str
    log: Path | None
    form: str | None
    policies: str
    models: str
    rule: str
    positions: int
    items: int
    rounds: int
    repetitions: int | None
    queries: int | None
    sessions: int | None
    iterations: int
    seed: int
    without: str | None
    study_instances: Path | None
    max_bad: float
    plugins: tuple[str, ...]
    jobs: int
    cluster: str | None
    resume: bool
    overwrite: bool
    out: Path
    command: list[str]


def carry_out(order: Order) -> None:
    """Reproduce; nothing long is begun before everything that was given has been checked."""
    announce()
    started = time.monotonic()
    protocol = protocol_of(order)
    others = study_instances(order)
    folder, asked = Folder(order.out), facts_asked(order, protocol)
    _check_use(folder, order)
    with output_folder(order.out), _folder_errors(folder), folder.reserved():
        with engine_of(order.jobs, order.cluster, order.plugins) as engine:
            if order.overwrite:
                folder.clear()
            if not folder.experiment.exists():
                _begin(folder, protocol, asked, order)
            instances, log = folder.go_on(asked)
            if not folder.finished:
                sets = study_sets(protocol, others) if "study" in protocol.parts else {}
                special = special_queries(instances, protocol.positions)
                facts = reproduction_facts(protocol, log, instances, special, sets)
                _run(folder, parts_of(protocol, instances, special, sets), facts, order, engine, started)
        _report(folder)


def _check_use(folder: Folder, order: Order) -> None:
    """A folder with a run in it is neither gone on with nor thrown away unless that is asked for."""
    if order.resume and order.overwrite:
        raise InputError("--resume and --overwrite: choose one, to go on or to begin anew")
    for option, path in (("--log", order.log), ("--study-instances", order.study_instances)):
        if path is not None and path.resolve() in [file.resolve() for file in folder.files]:
            raise InputError(f"{option} {path}: is where a run writes its own {path.name}; name another --out")
    if folder.in_use and not order.resume and not order.overwrite:
        raise InputError(f"--out {order.out}: holds {_state(folder)}; go on with --resume, or {ANEW}")
    if order.resume and folder.results.exists() and not folder.experiment.exists():
        raise InputError(f"--out {order.out}: holds results of another command; {ANEW}")


def _state(folder: Folder) -> str:
    if not folder.experiment.exists() and not folder.pieces.exists():
        return f"{folder.in_use[0].name}, which a run would write anew"
    return "a finished run" if folder.finished else "a run that was not finished"


@contextmanager
def _folder_errors(folder: Folder) -> Iterator[None]:
    """What goes wrong once a run has begun is told with how to go on."""
    kept = "nothing that was finished is lost, go on with the same command and --resume"
    try:
        yield
    except FolderError as problem:
        raise InputError(str(problem)) from problem
    except PiecesError as problem:
        raise OutputError(f"{folder.pieces}: cannot be written: {problem}; {kept} when there is room") from problem
    except ClusterFailed as problem:
        raise (ClusterFailed(f"{problem}; {kept}") if folder.pieces.exists() else problem) from problem


def _begin(folder: Folder, protocol: Protocol, asked: dict[str, Any], order: Order) -> None:
    """Log and click models; not kept in pieces, for they take minutes at most."""
    try:
        instances, about, log = fitted_instances(order, protocol)
    except KeyboardInterrupt:
        raise Interrupted("interrupted while the click models were made; nothing is there to go on with") from None
    with writing(folder.path):
        folder.begin(asked, instances, about, log)


def _run(folder: Folder, parts: Parts, facts: dict[str, Any], order: Order, engine: Engine, started: float) -> None:
    pieces = Pieces(parts.cells, folder.pieces, started)
    try:
        _play(parts, pieces, order, engine)
        said = provenance(order.command, order.seed, pieces.elapsed)
        with writing(folder.results):
            write_outcome(folder.path, parts, pieces, {**said, "reproduction": {**facts, **measured(parts, pieces)}})
    finally:
        pieces.close()
    folder.remove_pieces()


def _play(parts: Parts, pieces: Pieces, order: Order, engine: Engine) -> None:
    total = sum(cell.plan.repetitions * cell.plan.rounds for cell in parts.cells)
    there = pieces.rounds_there
    if there or pieces.dropped:
        torn = f"; a torn record of {pieces.dropped:,} bytes is played again" if pieces.dropped else ""
        typer.echo(f"{there:,} of {total:,} rounds are there already{torn}", err=True)
    with round_meter(total - there) as meter:
        try:
            with compiling():
                simulate(parts.cells, on_rounds=meter, engine=engine, gathered=pieces)
        except KeyboardInterrupt:
            played = f"interrupted after {there + meter.played:,} of {total:,} rounds"
            raise Interrupted(f"{played}; go on with the same command and --resume") from None


def _report(folder: Folder) -> None:
    from saferank.cli.claims import missing_for_a_report, show_report

    missing = missing_for_a_report()
    if missing:
        typer.echo(folder.results)
        typer.echo(f"no report without {missing[0]}; to get it: pip install 'saferank[report]'", err=True)
        return
    try:
        show_report(folder.results, folder.path)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted while the report was made; {folder.results} is complete") from None
