"""From the options of ``saferank reproduce`` to its protocol, every option checked."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saferank.cli.errors import InputError, blaming
from saferank.cli.options import ALL_POLICIES, OURS, names_in
from saferank.datasets.sessions import RANKING_LENGTH
from saferank.fitting import estimator
from saferank.instances import Instance, InstanceError, check_positions, load_instances
from saferank.policies import policy_kind
from saferank.reproduction.parts import EMBEDDED
from saferank.reproduction.protocol import PARTS, PROFILES, Protocol, Sizes
from saferank.statistics.decision import decision_rule

if TYPE_CHECKING:
    from saferank.cli.reproduction import Order


def protocol_of(order: "Order") -> Protocol:
    """What is run: the profile, changed by the options that were given."""
    policies, models, parts = names_in(order.policies, "--policies"), names_in(order.models, "--models"), _parts(order)
    if order.policies == ALL_POLICIES and "additions" in parts:
        policies += names_in(OURS, "--policies")
    with blaming("--policies"):
        for name in policies:
            policy_kind(name)
    with blaming("--models"):
        for name in models:
            estimator(name)
    with blaming("--rule"):
        decision_rule(order.rule, order.rounds)
    if order.positions > RANKING_LENGTH:
        raise InputError(f"--positions: found {order.positions}, expected at most {RANKING_LENGTH}, a page of the log")
    if order.items < order.positions:
        raise InputError(f"--items: found {order.items}, expected at least {order.positions}, the --positions")
    with blaming("--items"):
        return Protocol(
            profile=order.profile,
            sizes=_sizes(order),
            policies=policies,
            models=models,
            rule=order.rule,
            positions=order.positions,
            items=order.items,
            rounds=order.rounds,
            seed=order.seed,
            iterations=order.iterations,
            parts=parts,
        )


def _sizes(order: "Order") -> Sizes:
    """The sizes of the profile; smaller parts shrink with the experiment, but do not grow with it."""
    if order.profile not in PROFILES:
        raise InputError(f"--profile: unknown profile {order.profile!r}; known ones: {', '.join(PROFILES)}")
    usual = PROFILES[order.profile]
    queries = usual.queries if order.queries is None else order.queries
    repetitions = usual.repetitions if order.repetitions is None else order.repetitions
    return replace(
        usual,
        queries=queries,
        repetitions=repetitions,
        sessions=_sessions(order, usual.sessions),
        sensitivity_queries=min(usual.sensitivity_queries, queries),
        sensitivity_repetitions=min(usual.sensitivity_repetitions, repetitions),
        study_queries=min(usual.study_queries, queries),
        study_repetitions=min(usual.study_repetitions, repetitions),
    )


def _sessions(order: "Order", usual: int) -> int:
    if order.log is not None and order.sessions is not None:
        raise InputError("--sessions: is about the synthetic log; leave it out with --log")
    if order.log is not None and order.form is None:
        raise InputError("--log: needs --format yandex-personalized, yandex-relevance or sessions")
    if order.log is None and order.form is not None:
        raise InputError("--format: is the format of --log; name the log, or leave it out")
    return usual if order.sessions is None else order.sessions


def _parts(order: "Order") -> tuple[str, ...]:
    left_out = () if order.without is None else names_in(order.without, "--without")
    for name in left_out:
        if name not in PARTS:
            raise InputError(f"--without: unknown part {name!r}; known ones: {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part not in left_out)


def study_instances(order: "Order") -> dict[str, list[Instance]]:
    """The instance set of --study-instances by the name of its file, every one fit for the study."""
    path = order.study_instances
    if path is None:
        return {}
    option = f"--study-instances {path}"
    try:
        instances = load_instances(path)
        for instance in instances:
            check_positions(instance, order.positions, option)
    except InstanceError as problem:
        raise InputError(f"--study-instances: {problem}") from problem
    return {path.stem if path.stem != EMBEDDED else path.name: instances}


def facts_asked(order: "Order", protocol: Protocol) -> dict[str, Any]:
    """Everything that results depend on, as it is kept to be compared with when a run is resumed."""
    log = order.log
    return {
        **protocol.facts(),
        "log": None if log is None else log.name,
        "log_bytes": log.stat().st_size if log is not None and log.is_file() else None,
        "format": order.form,
        "max_bad": order.max_bad,
        "study_instances": None if order.study_instances is None else _digest(order.study_instances),
        "plugins": {name: _digest(Path(name)) if Path(name).is_file() else None for name in order.plugins},
    }


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
