# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Add a policy and compare it
#
# *First-swap* exchanges the first two items on every other page and keeps the order that was clicked more. A policy is
# a tuple of hyper-parameters, evidence and plan as tuples of arrays, and a few verbs.

# %%
from typing import NamedTuple

import numpy as np

from saferank.policies import Presentation, register
from saferank.verbs import choose, follow, implements, learn, renew


class FirstSwap(NamedTuple):
    lead: int  # by how many clicks the second item must lead


class FirstSwapEvidence(NamedTuple):
    clicks: np.ndarray  # [L] by item


class FirstSwapPlan(NamedTuple):
    base: np.ndarray  # production's ranking
    leader: np.ndarray  # the best ranking so far


# %%
@implements(choose, FirstSwap)
def _choose(policy, evidence, plan, rng, impression):
    leader = plan.leader
    impression.places[0] = len(leader)
    for place in range(len(leader)):
        impression.ranking[place] = leader[place]
        impression.start[place], impression.end[place] = place, place + 1
    if impression.round[0] % 2 == 0 and len(leader) > 1:
        impression.ranking[0], impression.ranking[1] = leader[1], leader[0]


@implements(learn, FirstSwap)
def _learn(policy, evidence, impression, clicks):
    for place in range(min(2, len(clicks))):
        evidence.clicks[impression.ranking[place]] += clicks[place]


@implements(renew, FirstSwap)
def _renew(policy, evidence, plan, issued):
    for place in range(len(plan.base)):
        plan.leader[place] = plan.base[place]
    if len(plan.base) > 1:
        first, second = plan.base[0], plan.base[1]
        if evidence.clicks[second] - evidence.clicks[first] >= policy.lead:
            plan.leader[0], plan.leader[1] = second, first


@implements(follow, FirstSwap)
def _follow(policy, evidence, plan, impression, clicks, issued):
    _renew(policy, evidence, plan, issued)


# %%
def start(setup):
    return FirstSwap(lead=30), FirstSwapEvidence(np.zeros(setup.n_items, np.int64))


def plan(policy, evidence, call):
    return FirstSwapPlan(call.base, call.base.copy())


mine = register(
    "first-swap",
    FirstSwap,
    start=start,
    plan=plan,
    leader=lambda evidence, plan: plan.leader.astype(np.int64),
    shown_as=Presentation("FirstSwap"),
)

# %% [markdown]
# The contract is checked in sentences.

# %%
from saferank.checks import check_policy

check_policy("first-swap", n_items=5, n_positions=3, rounds=60)

# %% [markdown]
# It plays beside the others; the class stands for its name.

# %%
from saferank import embedded_instances, simulate

instances = embedded_instances(2, models=("pbm",))
results = simulate(instances, [FirstSwap, "original"], rounds=2_000, repetitions=4)
results

# %%
results.compare("first-swap", "original")

# %%
results.plot()
