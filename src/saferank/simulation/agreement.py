"""Plug-ins in the compiled loop: they must do there what their Python code says.

The loop of a plug-in is compiled before anything is played in any case; here its first rounds are compared with the
same loop as plain Python. The package's own policies are compared with slow transcriptions by the tests.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from saferank._kernel import JIT, CompilationError, implemented, is_foreign, specialised, why_not_compiled
from saferank.checks.contract import ContractError, Interpreter, blaming, require
from saferank.checks.policy import differently_compiled, is_plugin
from saferank.checks.state import same
from saferank.plugins import home_of, place_of
from saferank.policies import make_room, make_room_in_plan
from saferank.simulation.experiment import Cell
from saferank.simulation.rounds import Table, new_tally, play
from saferank.statistics.certificates import new_certificates
from saferank.verbs import Impression, choose, learn, new_impression

ROUNDS = 100


def check_compiled(cells: Sequence[Cell]) -> None:
    """Raise a ``ContractError`` when a plug-in plays other rounds compiled than interpreted."""
    if JIT:
        pairs = {(cell.kind.policy, cell.kind.start, type(cell.instance.model)): cell for cell in reversed(cells)}
        for cell in pairs.values():
            if is_plugin(cell.kind) or is_foreign(type(cell.instance.model)):
                _compare(cell)


def _compare(cell: Cell) -> None:
    policy, model = cell.kind.policy, type(cell.instance.model)
    _check_compiles(cell)
    compiled = list(_rounds(cell, specialised(play, policy, model)))
    interpreter = Interpreter(policy.__module__, home_of(cell.kind.start).__module__, model.__module__)
    part, name = (policy, cell.kind.name) if is_plugin(cell.kind) else (model, model.__name__)
    with np.errstate(all="ignore"), blaming(part):  # compiled code does not warn either
        for number, interpreted in enumerate(_rounds(cell, interpreter.twin(play))):
            require(same(compiled[number], interpreted), differently_compiled(name, number + 1))


def _check_compiles(cell: Cell) -> None:
    """Compile ``choose`` and ``learn`` of a plug-in alone: inside the loop numba does not say what is wrong."""
    kind, setup = cell.kind, cell.setup
    if not is_foreign(kind.policy):
        return
    policy, evidence = kind.begin(setup)
    plan = kind.plan_for(policy, evidence, setup.first_call())
    page, clicks = _blank(cell), np.zeros(setup.n_positions, np.int64)
    for verb, arguments in ((choose, (plan, cell.streams(0)[0], page)), (learn, (page, clicks))):
        case: Any = implemented(verb, kind.policy)
        try:
            case(policy, evidence, *arguments)
        except CompilationError as problem:
            sentence = f"{verb.__name__}() of {kind.name} does not compile: {why_not_compiled(problem)}"
            raise ContractError(sentence, place_of(case)) from problem


def _blank(cell: Cell) -> Impression:
    setup = cell.setup
    return new_impression(setup.n_positions, cell.kind.places(setup.n_items, setup.n_positions))


def _rounds(cell: Cell, loop: Callable[..., None]) -> Iterator[tuple[Any, ...]]:
    """Round by round: the page, its clicks, the regret so far, the evidence and the plan."""
    kind, setup = cell.kind, cell.setup
    policy, evidence = kind.begin(setup)
    plan = kind.empty_plan(policy, evidence, setup.first_call())
    impression, clicks = _blank(cell), np.zeros(setup.n_positions, np.int64)
    tally = new_tally(cell.checkpoints)
    policy_rng, user_rng = cell.streams(0)
    page_rng = user_rng.copy()
    for number in range(min(ROUNDS, cell.plan.rounds)):
        policy, evidence = make_room(kind, setup, policy, evidence, len(impression.ranking))
        plan = make_room_in_plan(plan)
        certificates = evidence.duels.certificates if kind.certifies else new_certificates(0)
        table = Table(impression, clicks, certificates, policy_rng, user_rng, page_rng)
        loop(policy, evidence, plan, cell.world, table, tally, number + 1)
        yield impression.shown.copy(), clicks.copy(), tally.regret.copy(), _copied((evidence, plan))


def _copied(parts: Any) -> Any:
    return tuple(map(_copied, parts)) if isinstance(parts, tuple) else parts.copy()
