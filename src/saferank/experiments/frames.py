"""Results as columns in long form, for polars, pandas and Parquet, and the ends of all curves as tables."""

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saferank.files import replacing
from saferank.reporting.looks import policy_name
from saferank.reporting.numbers import plainly
from saferank.reporting.pooling import ending, endings_table, pooled
from saferank.reporting.reading import differing_rules
from saferank.reporting.runs import NAMES
from saferank.simulation.results import Result
from saferank.simulation.runs import MEASURES, Runs
from saferank.table import TextTable

if TYPE_CHECKING:
    import pandas
    import polars


MEANS = (
    "regret_mean", "regret_stderr", "violations_mean", "violations_stderr", "wrong_certificates_mean",
    "clicks_relative_mean", "worst_page_min",
)  # fmt: skip


def run_columns(curves: Sequence[Result], runs: Sequence[Runs]) -> dict[str, Any]:
    """One row per run and kept checkpoint."""
    sizes = [each.values.shape[0] * each.values.shape[1] for each in runs]
    columns: dict[str, Any] = {name: _repeated([getattr(curve, name) for curve in curves], sizes) for name in NAMES}
    columns["positions"] = np.repeat([curve.positions for curve in curves], sizes)
    columns["lifetime"] = _repeated([curve.lifetime for curve in curves], sizes)
    columns["repetition"] = _stacked([np.repeat(np.arange(len(r.values)), len(r.rounds)) for r in runs])
    columns["round"] = _stacked([np.tile(r.rounds, len(r.values)) for r in runs])
    for place, measure in enumerate(MEASURES):
        columns[measure] = _stacked([r.values[:, :, place].ravel() for r in runs])
    columns["violations"] = columns["violations"].astype(np.int64)
    certified = np.repeat([curve.wrong_certificates_mean is not None for curve in curves], sizes)
    columns["wrong_certificates"] = np.where(certified, columns["wrong_certificates"], np.nan)
    return columns


def mean_frame(curves: Sequence[Result]) -> "polars.DataFrame":
    """One row per checkpoint, with means and standard errors over repetitions."""
    columns = (*NAMES, "lifetime", "positions", "items", "repetitions", "rounds", *MEANS)
    without = {name: [[None] * len(curve.rounds) for curve in curves] for name in MEANS}
    found = {name: [getattr(curve, name) for curve in curves] for name in columns}
    filled = {name: [own or none for own, none in zip(found[name], without[name], strict=True)] for name in MEANS}
    return polars_frame(found | filled).explode("rounds", *MEANS).rename({"rounds": "round"})


def _repeated(names: list[Any], sizes: Sequence[int]) -> list[Any]:
    return [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]


def _stacked(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0)


def polars_frame(columns: dict[str, Any]) -> "polars.DataFrame":
    """The columns as a frame of polars, NaN as null."""
    import polars

    kinds: dict[str, Any] = {name: polars.String for name in columns if name in NAMES}  # also where all are None
    kinds |= {name: polars.Int64 for name in columns if name == "lifetime"}
    kinds |= {name: polars.List(polars.Float64) for name in columns if name in MEANS}
    return polars.DataFrame(columns, schema_overrides=kinds, nan_to_null=True)


def pandas_frame(frame: "polars.DataFrame") -> "pandas.DataFrame":
    """The same rows for pandas."""
    try:
        import pandas
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install 'saferank[pandas]'") from problem
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def write_runs(path: Path, curves: Sequence[Result], runs: Sequence[Runs]) -> None:
    """Write single runs as Parquet, one row per run and checkpoint."""
    content = io.BytesIO()
    polars_frame(run_columns(curves, runs)).write_parquet(content, compression="zstd", statistics=False)
    with replacing(path) as file:
        file.write(content.getbuffer())


_PARTS = (("rule", "rule"), ("positions", "K"), ("lifetime", "lifetime"), ("world", "world"))


def labelled(curves: Sequence[Result]) -> list[Result]:
    """The curves with labels for policies: what differs among the curves of a policy is added to its name.

    A rule is added too where policies differ in it: part of what they differ in is the rule's.

    >>> from saferank.simulation.results import Result
    >>> one = Result("q", "pbm", "kl-ucb-br", "paper:0.1", 5, 10, 1, [1], [0.0], [None], [0.0], [None], None)
    >>> [curve.policy for curve in labelled([one, replace(one, rule="paper:0.2", positions=3)])]
    ['kl-ucb-br rule=paper:0.1 K=5', 'kl-ucb-br rule=paper:0.2 K=3']
    >>> [curve.policy for curve in labelled([one, replace(one, policy="safe-draw", rule="anytime:0.1")])]
    ['kl-ucb-br rule=paper:0.1', 'safe-draw rule=anytime:0.1']
    >>> labelled([one])[0].policy
    'kl-ucb-br'
    """
    ruled = differing_rules(curves)
    varying = {policy: _varying(curves, policy, policy in ruled) for policy in {curve.policy for curve in curves}}
    return [replace(curve, policy=_label(curve, varying[curve.policy])) for curve in curves]


def _varying(curves: Sequence[Result], policy: str, ruled: bool) -> list[tuple[str, str]]:
    """The parts in which the curves of a policy differ, each with its short name; the rule also where ``ruled``."""
    own = [curve for curve in curves if curve.policy == policy]
    several = {part: len({getattr(curve, part, None) for curve in own}) > 1 for part, _ in _PARTS}
    return [(part, name) for part, name in _PARTS if several[part] or (ruled and part == "rule")]


def _label(curve: Result, parts: Sequence[tuple[str, str]]) -> str:
    values = [(name, getattr(curve, part, None)) for part, name in parts]
    return " ".join([curve.policy, *(f"{name}={'none' if value is None else value}" for name, value in values)])


def title(curves: Sequence[Result]) -> str:
    """What the tables show."""
    return f"after {curves[0].rounds[-1]:,} rounds, averaged over instances"


def long_table(curves: Sequence[Result], headline: str = "") -> TextTable:
    """The ends of all curves for a screen or a notebook: one row per click model and policy."""
    columns = ["model", "policy", "regret", "violations a run", "wrong certificates"]
    ends = [(each, ending(each)) for each in pooled(curves)]
    rows = [
        [each.model, each.policy, str(end.regret), plainly(end.violations.mean), end.wrong_certificates]
        for each, end in ends
    ]
    return TextTable(f"{headline}{title(curves)}", columns, rows, names=2)


def wide_table(curves: Sequence[Result]) -> TextTable:
    """The ends of all curves for a paper: one row per policy, regret and violations under every click model."""
    together = pooled(curves)
    models = list(dict.fromkeys(curve.model for curve in together))
    policies = dict.fromkeys(curve.policy for curve in together)
    return endings_table(together, policies, models, policy_name, title(curves))
