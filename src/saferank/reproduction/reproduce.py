"""``saferank.reproduce``: log, click models, runs, results and report, as one function that can be interrupted."""

import inspect
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, RunInterrupted, several, writing
from saferank.reproduction.protocol import Protocol

if TYPE_CHECKING:
    from saferank.experiments.results import Results
    from saferank.progress import Reporter
    from saferank.reporting.build import Report
    from saferank.reproduction.folder import Folder
    from saferank.reproduction.parts import Parts
    from saferank.simulation.engine import SimulationEngine


@dataclass(frozen=True, repr=False)
class Reproduction:
    """What ``reproduce`` made: the folder, its results, the report."""

    folder: Path
    report: "Report | None"  # None: it was not asked for, or matplotlib or jinja2 are not installed

    @property
    def results(self) -> "Results":
        """The paper's experiment."""
        return _loaded(self.folder / "results.json")

    @property
    def sensitivity(self) -> "Results":
        """What the paper left open: other rules, candidates and ties."""
        return _loaded(self.folder / "sensitivity.json")

    @property
    def study(self) -> "Results":
        """The anytime rule beside the paper's."""
        return _loaded(self.folder / "study.json")

    def __repr__(self) -> str:
        return f"Reproduction in {self.folder}" + ("" if self.report is None else f"\n{self.report!r}")

    def _repr_html_(self) -> str:
        return f"<p>Reproduction in {self.folder}</p>" + ("" if self.report is None else self.report._repr_html_())


def _loaded(file: Path) -> "Results":
    from saferank.experiments.results import Results

    return Results.load(file)


def reproduce(
    out: str | os.PathLike[str],
    profile: str = "quick",
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    report: bool = True,
    progress: bool = True,
    **asked: Any,
) -> Reproduction:
    """Reproduce the paper's experiments, from a click log (synthetic unless ``log`` is given) to a report in ``out``.

    Nothing long is started before every argument has been checked.

    Args:
        out: The folder for everything that is made.
        profile: ``quick`` or ``paper``: how many queries, repetitions and sessions, where they are not given.
        jobs: Threads; None: one for each core.
        cluster: Address of a Dask scheduler to use instead of threads.
        resume: Continue the interrupted or crashed run in ``out``; the results are the same as without the break.
        overwrite: Replace the run in ``out``.
        report: Make the report as well.
        progress: Show a bar.
        **asked: The fields of ``Protocol``, which follows. ``help(saferank.reproduce)`` lists them.

    Returns:
        The folder, its results and the report.

    Raises:
        UsageError: Something cannot be used, an ``ArgumentError`` where it is an argument; also a folder that holds a
            run, when neither ``resume`` nor ``overwrite`` is given.
        OutputError: A file cannot be written.
        RunInterrupted: Ctrl-C; it says what is kept.

    """
    from saferank.checks.plugin import as_argument_error, check_plugin_policy, load_checked_plugins
    from saferank.experiments.engines import engine_of
    from saferank.experiments.run_folder import resumable
    from saferank.files import output_folder
    from saferank.logs.reading import source_of
    from saferank.policies import policy_kind
    from saferank.progress import progress_of
    from saferank.reproduction.folder import Folder

    started, out = time.monotonic(), Path(out)
    if asked.get("log") is not None and isinstance(pages := source_of(asked["log"]), list):
        asked |= {"log": _written(pages, out), "format": "sessions"}
    load_checked_plugins(several(asked.get("plugins", ()), "plugins"), compiled=True)
    protocol = Protocol.of({"profile": profile, **asked})
    others, kinds = protocol.study_sets(), [policy_kind(name) for name in protocol.policies or ()]
    with as_argument_error():
        for kind in kinds:
            check_plugin_policy(kind)
    folder, facts, shown = Folder(out), protocol.facts(), progress_of(progress)
    _check_sources(folder, protocol)
    folder.check_use(resume, overwrite)
    with output_folder(out), resumable(folder.pieces), folder.reserved():
        with engine_of(jobs, cluster, [kind.policy for kind in kinds]) as engine:
            if overwrite:
                folder.clear()
            if not folder.experiment.exists():
                _begin(folder, protocol, facts, shown)
            instances, log = folder.resumed(facts)
            if not folder.finished:
                experiment = _experiment(protocol, instances, log, others)
                _run(folder, *experiment, protocol, engine, shown, started)
        return Reproduction(out, _reported(folder, shown) if report else None)


def _written(sessions: list[Any], out: Path) -> Path:
    """The file of sessions that were given as a frame or a list; it stays beside the results, as a log does."""
    from saferank.files import write_atomically

    lines = "".join(f"{json.dumps(page)}\n" for page in sessions)
    with writing(out / "sessions.ndjson"):
        out.mkdir(parents=True, exist_ok=True)
        write_atomically(out / "sessions.ndjson", lines)
    return out / "sessions.ndjson"


def _with_arguments_of_the_protocol() -> inspect.Signature:
    own = inspect.signature(reproduce).parameters
    asked = [each.replace(kind=each.KEYWORD_ONLY) for each in inspect.signature(Protocol).parameters.values()]
    options = [each for name, each in own.items() if name not in ("out", "profile", "asked")]
    more = [each for each in asked if each.name != "profile"]
    return inspect.Signature([own["out"], own["profile"], *more, *options], return_annotation=Reproduction)


reproduce.__signature__ = _with_arguments_of_the_protocol()  # type: ignore[attr-defined]


def _check_sources(folder: "Folder", protocol: Protocol) -> None:
    """A run must not overwrite what it reads."""
    for name, path in (("log", protocol.log), ("study_instances", protocol.study_instances)):
        if path is not None and path.resolve() in [file.resolve() for file in folder.files]:
            raise ArgumentError(name, f"{path} is where a run writes its own {path.name}; name another folder")


def _begin(folder: "Folder", protocol: Protocol, facts: dict[str, Any], shown: "Reporter") -> None:
    """Log and click models; not kept in pieces, for they take minutes at most."""
    from saferank.files import sha256_of
    from saferank.reproduction.log import LOG_NAME, fitted_instances

    try:
        instances, about, log = fitted_instances(protocol, folder.path, shown)
    except KeyboardInterrupt:
        raise RunInterrupted(
            "interrupted while the click models were made; nothing was written that could be resumed"
        ) from None
    with writing(folder.path):
        digest = sha256_of(protocol.log or folder.path / LOG_NAME)
        folder.begin_with(facts, instances, about, {**log, "sha256": digest})


def _experiment(
    protocol: Protocol, instances: list[Any], log: dict[str, Any], others: dict[str, list[Any]]
) -> tuple["Parts", dict[str, Any]]:
    """Everything that is played, and the facts about it."""
    from saferank.reproduction.folder import reproduction_facts
    from saferank.reproduction.parts import parts_of, special_queries, study_sets

    sets = study_sets(protocol, others) if "study" in protocol.parts else {}
    special = special_queries(instances, protocol.positions, protocol.optimal, protocol.none_of_best)
    return parts_of(protocol, instances, special, sets), reproduction_facts(protocol, log, instances, special, sets)


def _run(
    folder: "Folder",
    parts: "Parts",
    facts: dict[str, Any],
    protocol: Protocol,
    engine: "SimulationEngine",
    shown: "Reporter",
    started: float,
) -> None:
    """Play what is missing and write the results."""
    from saferank.experiments.run_folder import GO_ON, opened_pieces
    from saferank.experiments.simulate import play
    from saferank.experiments.sources import read_facts
    from saferank.reproduction.folder import measured, write_outcome
    from saferank.simulation.results import provenance

    pieces = opened_pieces(parts.cells, folder.pieces, started, shown)
    play(pieces, engine, shown, lambda: GO_ON)
    source = {
        **provenance("saferank.reproduce", protocol.seed, pieces.elapsed),
        **read_facts(folder.instances, parts.paper),
    }
    with writing(folder.results):
        write_outcome(folder.path, parts, pieces, {**source, "reproduction": {**facts, **measured(parts, pieces)}})
    folder.remove_pieces()


def _reported(folder: "Folder", shown: "Reporter") -> "Report | None":
    from saferank.reporting.report import missing_for_a_report, report

    missing = missing_for_a_report()
    if missing:
        shown.note(f"no report without {missing[0]}; to get it: pip install 'saferank[report]'")
        return None
    try:
        return report(folder.results, folder.path)
    except KeyboardInterrupt:
        raise RunInterrupted(f"interrupted while the report was made; {folder.results} is complete") from None
