"""``saferank.simulate``: policies against simulated users, as one function.

What computes is imported when the function is called, so that importing it costs nothing.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.errors import ArgumentError, RunInterrupted, argument, several, whole_number, writing

if TYPE_CHECKING:
    from saferank.experiments.results import Results
    from saferank.experiments.run_folder import RunFolder
    from saferank.instances import Instance
    from saferank.policies import PolicyKind
    from saferank.progress import Reporter
    from saferank.simulation.engine import Gathered, SimulationEngine
    from saferank.simulation.experiment import Cell, Plan

    Instances = str | os.PathLike[str] | Instance | Mapping[str, Any] | Iterable[Instance | Mapping[str, Any]]
    Policy = str | type | PolicyKind


def simulate(
    instances: "Instances" = "embedded",
    policies: "Sequence[Policy] | Policy | None" = None,
    positions: int | Sequence[int] = 5,
    rounds: float = 100_000,
    repetitions: float = 100,
    rule: str | Sequence[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    *,
    checkpoints: Sequence[int] = (),
    cluster: str | None = None,
    lifetime: int | Sequence[int | None] | None = None,
    world: Mapping[str, Any] | Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    models: Sequence[str] | None = None,
    queries: int | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> "Results":
    """Play every policy on every instance and measure regret and safety.

    Several ``positions``, rules, lifetimes or values of settings are all played, in every combination (a sweep). The
    results depend on ``seed`` and on what is played, not on ``jobs`` or ``cluster``.

    Args:
        instances: Objects of ``Instance`` or dicts with the keys of a file, an instance file, or ``"embedded"``; all
            are checked alike.
        policies: Names, classes or ``PolicyKind`` objects, also such as were defined in a notebook cell; None: the five
            of the paper.
        positions: Items on a page.
        rounds: Pages of a run.
        repetitions: Runs of each policy on each instance.
        rule: ``paper:DELTA``, ``anytime:ALPHA`` or ``budget:ALPHA``; None: the kind that each policy takes first, at
            1/T. Of several rules a policy is played with those that it takes; ``Results.left_out`` names the others.
        seed: Seed of users and coins.
        jobs: Threads; None: one for each core.
        checkpoints: Rounds at which means are kept, beside the last; none: about 25 for single runs, more for means.
        cluster: Address of a Dask scheduler to use instead of threads.
        lifetime: Lifetime of certificates in rounds (docs/algorithms/drift.md); None: they never end.
        world: A world that is not the paper's, by the names of its parts: ``drift``, ``delay``, ``lost_pages``,
            ``lost_clicks``, ``layout``, ``examination``, ``reward`` (docs/researchers/worlds.md), like
            ``{"delay": 10}``.
        settings: Hyper-parameters, like ``{"bubble-rank.hidden_duels": [True, False]}``.
        models: Only these click models of a file or of the embedded set; None: all.
        queries: Only the first queries of a file or of the embedded set; None: all.
        out: A folder for the results, in which the run also keeps what is finished.
        resume: Continue the interrupted or crashed run in ``out``; the results are the same as without the break.
        overwrite: Replace the run in ``out``.
        progress: Show a bar.

    Returns:
        Regret, violations and clicks of every policy on every instance, by round.

    Raises:
        ArgumentError: Something cannot be used, said before anything is played; also a folder that holds a run, when
            neither ``resume`` nor ``overwrite`` is given.
        InstanceError: An instance is not valid (a ``UsageError`` as well).
        OutputError: A file cannot be written.
        RunInterrupted: Ctrl-C or the stop button of a notebook; it says what is kept.

    >>> results = simulate(policies=["original"], rounds=100, repetitions=2, jobs=1, progress=False)
    >>> results.means["instance"].n_unique(), results.models
    (20, ['pbm', 'cm', 'dcm', 'dbn', 'ubm', 'ccm'])

    """
    from saferank.experiments.engines import engine_of
    from saferank.experiments.sources import sources_of
    from saferank.experiments.sweeps import sweep_of, swept_cells, swept_policies
    from saferank.progress import progress_of
    from saferank.simulation.engine import Gathered
    from saferank.simulation.worlds import world_of

    chosen = chosen_instances(instances, models, queries)
    sweep = sweep_of(positions, rule, lifetime)
    first = plan_of(policies, sweep[0].positions, rounds, repetitions, sweep[0].rule, seed, checkpoints)
    plan = replace(first, policies=swept_policies(first.policies, settings or {}), **world_of(world))
    cells, left_out = swept_cells(chosen, plan, sweep)
    check_plugins(cells)
    sources, shown = sources_of(instances, cells, left_out), progress_of(progress)
    folder = _folder(out, resume, overwrite)
    with engine_of(jobs, cluster, classes_of(cells)) as engine:
        if folder is not None:
            return _in_folder(folder, cells, sources, engine, shown, overwrite)
        started, gathered = time.monotonic(), Gathered(cells)
        play(gathered, engine, shown, lambda: "nothing was written")
        return _results(gathered, sources, time.monotonic() - started)


def _folder(out: str | os.PathLike[str] | None, resume: bool, overwrite: bool) -> "RunFolder | None":
    """The folder to work in, fit for use; None: no files are written."""
    from saferank.experiments.run_folder import RunFolder

    if out is None:
        if resume or overwrite:
            raise ArgumentError("resume" if resume else "overwrite", "is about a folder; give out= as well")
        return None
    folder = RunFolder(Path(out))
    folder.check_use(resume, overwrite)
    return folder


def _in_folder(
    folder: "RunFolder",
    cells: "Sequence[Cell]",
    sources: dict[str, Any],
    engine: "SimulationEngine",
    shown: "Reporter",
    overwrite: bool,
) -> "Results":
    """Play what is missing in the folder and save the results there; those of a finished run are read."""
    from saferank.experiments.results import Results
    from saferank.experiments.run_folder import GO_ON, opened_pieces, resumable
    from saferank.files import output_folder

    started, asked = time.monotonic(), sources["asked"]
    with output_folder(folder.path), resumable(folder.pieces), folder.reserved():
        if overwrite:
            folder.clear()
        if folder.finished:
            results = Results.load(folder.results)
            folder.check_same(results.provenance, asked)
        else:
            if folder.experiment.exists():
                folder.check_same(folder.begun({}), asked)
            else:
                with writing(folder.path):
                    folder.begin(asked)
            pieces = opened_pieces(cells, folder.pieces, started, shown)
            try:
                play(pieces, engine, shown, lambda: GO_ON if pieces.results else "nothing was written")
            except BaseException:
                if not pieces.results:  # nothing to resume: leave the folder as it was
                    folder.clear()
                raise
            results = _results(pieces, sources, pieces.elapsed)
            results.save(folder.path, overwrite=True)  # what was there is cleared, or of an interrupted run
            folder.remove_pieces()
        folder.experiment.unlink(missing_ok=True)  # the results hold the same facts
        return results


def _results(gathered: "Gathered", sources: dict[str, Any], seconds: float) -> "Results":
    from saferank.experiments.results import Results
    from saferank.simulation.results import provenance

    source = provenance("saferank.simulate", sources["asked"]["seed"], seconds)
    return Results.of(gathered.in_order(), gathered.runs_in_order(), {**source, **sources})


def plan_of(
    policies: "Sequence[Policy] | Policy | None",
    positions: int,
    rounds: float,
    repetitions: float,
    rule: str | None,
    seed: int,
    checkpoints: Sequence[int] = (),
) -> "Plan":
    """What to play, every argument checked."""
    from saferank.policies import PolicyKind, policy_kind
    from saferank.policies.registry import PAPER, policies_of
    from saferank.simulation.experiment import DEFAULT_RULE, Plan

    chosen = policies_of(PAPER) if policies is None else policies
    for policy in (given := several(chosen, "policies")):
        if not isinstance(policy, str | type | PolicyKind):
            raise ArgumentError("policies", f"found {policy!r}, expected names or classes of policies")
    return Plan(
        policies=tuple(p if isinstance(p, str) else policy_kind(p) for p in given),
        n_positions=positions,
        rounds=whole_number(rounds, "rounds"),
        repetitions=whole_number(repetitions, "repetitions"),
        rule=DEFAULT_RULE if rule is None else rule,
        rule_is_given=rule is not None,
        seed=seed,
        checkpoints=tuple(
            whole_number(checkpoint, "checkpoints", at_least=0) for checkpoint in several(checkpoints, "checkpoints")
        ),
    )


def classes_of(cells: "Sequence[Cell]") -> set[Any]:
    """The classes of all policies and click models, and the functions that start the policies."""
    return {part for cell in cells for part in (cell.kind.policy, cell.kind.start, type(cell.instance.model))}


def chosen_instances(instances: "Instances", models: Sequence[str] | None, queries: int | None) -> "list[Instance]":
    """The instances of a name or path, some click models and queries of them only; or the given ones, checked."""
    from saferank.instances import checked_instances, choose_instances

    if isinstance(instances, str | os.PathLike):
        return choose_instances(instances, models, queries)
    for name, value in (("models", models), ("queries", queries)):
        if value is not None:
            raise ArgumentError(name, "chooses from a file or the embedded set; choose from your list yourself")
    with argument("instances"):
        return checked_instances(instances)


def check_plugins(cells: "Sequence[Cell]") -> None:
    """An ``ArgumentError`` when a policy or click model of a plug-in breaks its contract; nothing for our own."""
    from saferank.checks.plugin import as_argument_error, check_plugin_model, check_plugin_policy
    from saferank.experiments.engines import explain_compilation
    from saferank.simulation.agreement import check_compiled

    with as_argument_error(), explain_compilation():
        for cell in cells:
            check_plugin_policy(cell.kind, compiled=False)
            check_plugin_model(cell.instance.model, cell.plan.n_positions)
        check_compiled(cells)


def play(gathered: "Gathered", engine: "SimulationEngine", shown: "Reporter", kept: Callable[[], str]) -> None:
    """Play what is missing in ``gathered``; ``kept`` says in the message of an interrupt what remains of the work."""
    from saferank.experiments.engines import explain_compilation
    from saferank.simulation.engine import simulate as play_cells

    cells = gathered.cells
    _compile_loops_ahead(cells, engine, shown)
    total = sum(cell.plan.repetitions * cell.plan.rounds for cell in cells)
    before = gathered.rounds_there
    with shown.meter(total - before) as meter:
        try:
            with explain_compilation():
                play_cells(cells, on_rounds=meter, engine=engine, gathered=gathered)
        except KeyboardInterrupt:
            done = f"interrupted after {before + meter.done:,} of {total:,} rounds"
            raise RunInterrupted(f"{done}; {kept()}") from None


def _compile_loops_ahead(cells: "Sequence[Cell]", engine: "SimulationEngine", shown: "Reporter") -> None:
    """On several cores at once, if several policies have to be compiled."""
    from saferank.simulation.compiling import compile_ahead, jobs_of, worth_compiling
    from saferank.simulation.engine import Threads

    if isinstance(engine, Threads) and (jobs := worth_compiling(jobs_of(cells), engine.jobs)):
        shown.note(f"compiling {len(jobs)} policies for this machine, once: {', '.join(job.policy for job in jobs)}")
        compile_ahead(jobs, shown, engine.jobs)
