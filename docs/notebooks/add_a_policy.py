# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Add a policy and compare it
#
# *First-swap* exchanges the first two items on every other page and keeps the order that was clicked more. A policy is
# a tuple of hyper-parameters, a tuple of arrays, and two verbs.

# %%
from typing import NamedTuple

import numpy as np

from saferank.policies import Presentation, register
from saferank.verbs import choose, implements, learn


class FirstSwap(NamedTuple):
    lead: int  # by how many clicks the second item must lead


class FirstSwapState(NamedTuple):
    round: np.ndarray  # [1] pages issued
    leader: np.ndarray  # the best ranking so far
    clicks: np.ndarray  # [L] by item


# %%
@implements(choose, FirstSwap)
def _choose(policy, state, rng, impression):
    state.round[0] += 1
    impression.round[0], impression.places[0] = state.round[0], len(state.leader)
    for place in range(len(state.leader)):
        impression.ranking[place] = state.leader[place]
        impression.start[place], impression.end[place] = place, place + 1
    if state.round[0] % 2 == 0 and len(state.leader) > 1:
        impression.ranking[0], impression.ranking[1] = state.leader[1], state.leader[0]


@implements(learn, FirstSwap)
def _learn(policy, state, impression, clicks):
    if len(state.leader) == 1:
        return
    for place in range(2):
        state.clicks[impression.ranking[place]] += clicks[place]
    first, second = state.leader[0], state.leader[1]
    if state.clicks[second] - state.clicks[first] >= policy.lead:
        state.leader[0], state.leader[1] = second, first


# %%
def start(setup):
    ranking = np.arange(setup.n_positions, dtype=np.uint32)
    state = FirstSwapState(np.zeros(1, np.int64), ranking, np.zeros(setup.n_items, np.int64))
    return FirstSwap(lead=30), state


mine = register(
    "first-swap",
    FirstSwap,
    start=start,
    leader=lambda state: state.leader.astype(np.int64),
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
