"""What ``saferank compile`` compiles, and the process that compiles one job of it.

    python -m saferank.precompiling '["kl-ucb-br", ["pbm", "cm"], 0]'

It prints the name of every part when the cache holds it.
"""

import json
import sys
from collections.abc import Sequence

import numpy as np

from saferank._kernel import mark_compiled
from saferank.errors import ArgumentError, RunError, argument
from saferank.simulation.compiling import CompileJob

SERVICE, PAPER_PROFILE, EVERYTHING = "service", "paper", "all"
PURPOSES = (SERVICE, PAPER_PROFILE, EVERYTHING)
SERVED = ("safe-draw",)
"""What the service serves by default."""


def jobs_for(purpose: str, policies: Sequence[str] | None = None) -> list[CompileJob]:
    """The jobs of a purpose, the longest first; ``policies`` instead of those that belong to it."""
    from saferank.click_models import CLICK_MODELS
    from saferank.policies import POLICIES
    from saferank.policies.registry import PAPER, policies_of, policy_kind

    if purpose not in PURPOSES:
        raise ArgumentError("for", f"unknown purpose {purpose!r}; known ones: {', '.join(PURPOSES)}")
    with argument("policies"):
        for name in policies or ():
            policy_kind(name)  # or it names the known policies
    served = [CompileJob(policy, size=size) for policy in policies or SERVED for size in _sizes(policy)]
    if purpose == SERVICE:
        return served
    models = ("pbm", "cm") if purpose == PAPER_PROFILE else tuple(CLICK_MODELS)
    usual = (*policies_of(PAPER), *SERVED) if purpose == PAPER_PROFILE else tuple(POLICIES)
    chosen = sorted(policies or dict.fromkeys(usual), key=lambda name: name not in SERVED)
    played = [CompileJob(policy, models) for policy in chosen]
    return played if purpose == PAPER_PROFILE else [*served, *played]


def _sizes(policy: str) -> list[int]:
    """Sizes of catalogues for which the evidence or the plans of a policy differ in their types."""
    from saferank.policies.registry import Setup, policy_kind
    from saferank.simulation.experiment import types_of
    from saferank.statistics.decision import decision_rule
    from saferank.verbs import Call

    try:
        from saferank.service.knowledge.warm_up import SIZES
    except ImportError as problem:
        raise RunError(f"the service needs more packages ({problem}): pip install 'saferank[service]'") from problem
    kind = policy_kind(policy)
    rule, lifetime = decision_rule(kind.default_rule()), 1000 if kind.lifetimes else None
    smallest = {}
    for size in reversed(SIZES):
        parts, items = kind.begin(Setup(size, 2, rule, lifetime=lifetime)), np.arange(size, dtype=np.uint32)
        smallest[types_of((*parts, kind.empty_plan(*parts, Call(items[:2], items[2:]))))] = size
    return sorted(smallest.values())


def run_job(job: CompileJob) -> None:
    """Compile, or load, in this process; say so after each part."""
    for part, model in zip(job.parts, job.models or ("",), strict=True):
        if model:
            _play(job.policy, model)
        else:
            _serve(job)
        mark_compiled(part)
        print(part, flush=True)  # noqa: T201 (to the process that waits)


def _serve(job: CompileJob) -> None:
    """The job of the smallest catalogue compiles all that does not depend on the size."""
    from saferank.policies.registry import policy_kind
    from saferank.service.knowledge.warm_up import SIZES, draw_first_page, warm_up

    rule = policy_kind(job.policy).default_rule()
    if job.size == SIZES[0]:
        warm_up(job.policy, rule, (job.size,))
    else:
        draw_first_page(job.policy, rule, job.size)


def _play(policy: str, model: str) -> None:
    from saferank.instances import embedded_instances
    from saferank.simulation.experiment import Plan, cells_of, compile_loops

    instances = embedded_instances(1, models=tuple(dict.fromkeys(("pbm", model))))
    plan = Plan(policies=(policy,), n_positions=5, rounds=1, repetitions=1)
    compile_loops([cell for cell in cells_of(instances, plan) if cell.instance.model_name == model])


if __name__ == "__main__":
    _name, _models, _size = json.loads(sys.argv[1])
    run_job(CompileJob(_name, tuple(_models), _size))
