# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # The paper in small
#
# Three queries, two click models, the paper's five policies. `simulate` shows a bar while it plays.

# %%
from saferank import embedded_instances, simulate

results = simulate(embedded_instances(3, models=("pbm", "cm")), rounds=5_000, repetitions=4, seed=1)
results

# %% [markdown]
# Regret above, safety violations below.

# %%
results.plot()

# %% [markdown]
# The same numbers as a table in long form: one row per query, click model, policy, run and checkpoint.

# %%
import polars

finals = results.to_polars().filter(round=5_000)
finals.group_by("policy", maintain_order=True).agg(polars.col("regret", "violations").mean())

# %% [markdown]
# Is KL-UCB-BR better than BubbleRank, query by query? Negative differences are in favour of the first.

# %%
results.compare("kl-ucb-br", "bubble-rank")

# %% [markdown]
# For a paper.

# %%
results.to_latex()

# %% [markdown]
# From a click log to a report: a synthetic log, fitted click models, the runs, the paper's claims with verdicts. The
# cell can be interrupted; with `resume=True` the same call continues the run.

# %%
import tempfile

from saferank import reproduce

folder = tempfile.mkdtemp()
done = reproduce(
    folder,
    queries=2,
    sessions=4_000,
    rounds=300,
    repetitions=2,
    iterations=5,
    policies=["kl-ucb-br", "bubble-rank", "original"],
    models=["pbm"],
    without=["sensitivity", "study"],
    overwrite=True,
)
done.results

# %%
done.report
