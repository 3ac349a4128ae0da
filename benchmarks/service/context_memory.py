"""Memory of what the service knows of many contexts: ``python benchmarks/service/context_memory.py``.

Every context has 40 items of which a page shows 10, and has learnt from some pages. What is counted: the arrays of the
evidence, which are nearly all of it, and the growth of the whole process.
"""

import argparse
import gc
import resource
from pathlib import Path

import numpy as np

from saferank.live.learner import Learner
from saferank.live.replay import IF_OUTDATED, drawing, new_workspace
from saferank.policies import policy_kind
from saferank.randomness import stream
from saferank.saved_state import bytes_in_use


def main() -> None:
    """Print bytes for each context."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--contexts", type=int, default=2000)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--positions", type=int, default=10)
    parser.add_argument("--pages", type=int, default=50, help="that each context has learnt from")
    parser.add_argument("--policies", default="safe-draw,kl-ucb-br")
    parser.add_argument("--lifetime", type=int, default=100_000)
    options = parser.parse_args()
    for policy in options.policies.split(","):
        names = [str(number) for number in range(options.items)]
        size, before = (names, options.positions, options.pages, options.lifetime), _resident()
        known = [_learnt(policy, *size, seed) for seed in range(options.contexts)]
        gc.collect()
        arrays = sum(bytes_in_use(learner.evidence) for learner in known) / len(known)
        process = (_resident() - before) / len(known)
        print(f"{policy}: {arrays / 1e3:.1f} KB of arrays, {process / 1e3:.1f} KB of the process a context")
        del known


def _learnt(policy: str, names: list[str], k: int, pages: int, lifetime: int, seed: int) -> Learner:
    rule = policy_kind(policy).default_rule("1e-3")
    learner = Learner(policy, original=names[:k], candidates=names[k:], rule=rule, lifetime=lifetime)
    call, users = learner.call(names[:k], names[k:]), np.random.default_rng(seed)
    plan, workspace = learner.plan(call, 0), new_workspace(k, learner.places(call))
    workspace.words[:] = stream(seed, "policy")
    for number in range(pages):
        workspace.issued[:] = number, IF_OUTDATED
        drawing(learner.policy, learner.evidence, plan, workspace)()
        learner.learn(workspace.impression, (users.random(k) < 0.2).astype(np.int64))
    return learner


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
