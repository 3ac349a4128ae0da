"""Results as frames of polars: means at every checkpoint, and single runs at some of them.

There are two, because a run is kept at about 25 of 200 checkpoints: runs at all of them would be 24 million rows of the
paper's experiment. Both have the columns ``KEYS``, which tell its curves apart. Files are those of every version:
``results.json`` has a curve in an entry, ``runs.parquet`` beside it a run and checkpoint in a row.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars
from polars import DataFrame, Expr, Float64, Int64, String, col, lit, when

from saferank.files import on_one_line, replacing
from saferank.simulation.results import Result, ResultsError
from saferank.simulation.runs import MEASURES, Runs

if TYPE_CHECKING:
    import pandas

RESULTS, RUNS = "results.json", "runs.parquet"
NAMES = ("instance", "model", "policy", "rule", "world")
KEYS = (*NAMES, "positions", "lifetime")
"""What tells the curves of an experiment apart."""
MEANS = (
    "regret_mean", "regret_stderr", "violations_mean", "violations_stderr", "wrong_certificates_mean",
    "clicks_relative_mean", "worst_page_min",
)  # fmt: skip
_OPTIONAL = ("wrong_certificates_mean", "clicks_relative_mean", "worst_page_min")
_COUNTS = ("positions", "lifetime", "items", "repetitions")
_KINDS = dict.fromkeys(NAMES, String) | dict.fromkeys(_COUNTS, Int64)  # also where all are None, or there are none


def means_of(results: Sequence[Result]) -> DataFrame:
    """One row per curve and checkpoint, with means and standard errors over repetitions."""
    facts = (*NAMES, "lifetime", "positions", "items", "repetitions", "rounds")
    columns: dict[str, Any] = {name: [sound(getattr(each, name)) for each in results] for name in facts}
    for name in MEANS:
        columns[name] = [getattr(each, name) or [None] * len(each.rounds) for each in results]
    kinds = _KINDS | {"rounds": polars.List(Int64)} | dict.fromkeys(MEANS, polars.List(Float64))
    frame = DataFrame(columns, schema_overrides=kinds)
    return frame.explode("rounds", *MEANS).rename({"rounds": "round"})


def sound(value: Any) -> Any:
    """A name as text that can be written: JSON may hold half a character. Other values stay."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def results_of(means: DataFrame) -> list[Result]:
    """The entries of ``results.json``."""
    made = []
    for part in means.partition_by(*KEYS, maintain_order=True):
        row = part.row(0, named=True)
        facts = {name: row[name] for name in (*KEYS, "items", "repetitions")}
        columns: dict[str, Any] = {name: part[name].to_list() for name in MEANS}
        absent = {name: None for name in _OPTIONAL if part[name].null_count() == len(part)}
        made.append(Result(**facts, rounds=part["round"].to_list(), **{**columns, **absent}))
    return made


def runs_frame(results: Sequence[Result], runs: Sequence[Runs]) -> DataFrame:
    """One row per run and kept checkpoint."""
    sizes = [each.values.shape[0] * each.values.shape[1] for each in runs]
    columns: dict[str, Any] = {
        name: [value for each, n in zip(results, sizes, strict=True) for value in [sound(getattr(each, name))] * n]
        for name in KEYS
    }
    columns["repetition"] = _stacked([np.repeat(np.arange(len(r.values)), len(r.rounds)) for r in runs])
    columns["round"] = _stacked([np.tile(r.rounds, len(r.values)) for r in runs])
    for place, measure in enumerate(MEASURES):
        columns[measure] = _stacked([r.values[:, :, place].ravel() for r in runs])
    certified = np.repeat([each.wrong_certificates_mean is not None for each in results], sizes)
    columns["violations"] = columns["violations"].astype(np.int64)
    columns["wrong_certificates"] = np.where(certified, columns["wrong_certificates"], np.nan)
    return DataFrame(columns, schema_overrides={name: _KINDS[name] for name in KEYS}, nan_to_null=True)


def _stacked(parts: list[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0)


def write_runs(path: Path, runs: DataFrame) -> None:
    """Write single runs as Parquet, one row per run and checkpoint."""
    content = io.BytesIO()
    runs.write_parquet(content, compression="zstd", statistics=False)
    with replacing(path) as file:
        file.write(content.getbuffer())


def read_runs(path: Path, means: DataFrame) -> DataFrame | None:
    """The runs of these curves, in their order; None when there is no such file."""
    if not path.is_file():
        return None
    curves = means.select(*KEYS, "repetitions").unique(maintain_order=True)
    try:
        frame = polars.read_parquet(path)
        keys = [key for key in KEYS if key in frame.columns]  # an older file has fewer
        runs = frame.select(*keys, "repetition", "round", *MEASURES)
        found = curves.join(runs, on=keys, how="left", nulls_equal=True, maintain_order="left_right")
    except (polars.exceptions.PolarsError, OSError) as problem:
        raise _no_runs(path, str(problem).partition("\n")[0]) from None
    counted = found.group_by(*KEYS, maintain_order=True).agg(
        played=col("repetition").n_unique(), asked=col("repetitions").first(), lacking=col("repetition").null_count()
    )
    wrong = counted.filter((col("played") != col("asked")) | (col("lacking") > 0))
    if len(wrong):
        raise _no_runs(path, "{policy} on {instance} ({model})".format(**wrong.row(0, named=True)))
    return found.drop("repetitions")


def _no_runs(path: Path, reason: str) -> ResultsError:
    return ResultsError(f"{on_one_line(path)}: does not hold the runs of the results beside it: {reason}")


def run_values(runs: DataFrame, repetitions: int) -> Runs:
    """The runs of one curve as arrays."""
    rounds = runs["round"].to_numpy()[: len(runs) // repetitions]
    columns = [runs[measure].cast(Float64).fill_null(0.0).to_numpy() for measure in MEASURES]
    return Runs(rounds, np.stack(columns, axis=1).reshape(repetitions, len(rounds), len(MEASURES)))


def ends_of(frame: DataFrame) -> DataFrame:
    """The rows of the last checkpoint of every curve."""
    return frame.filter(col("round") == col("round").max().over(*KEYS))


def in_order(frame: DataFrame, column: str) -> list[Any]:
    """The different values of a column, in the order in which they come."""
    return frame[column].unique(maintain_order=True).to_list()


def pandas_frame(frame: DataFrame) -> "pandas.DataFrame":
    """The same rows for pandas."""
    try:
        import pandas
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install 'saferank[pandas]'") from problem
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def differing_rules(frame: DataFrame) -> dict[str, str]:
    """The rule of each policy that takes one, where they differ: curves at different rules must say so."""
    ruled = frame.select("policy", "rule").drop_nulls().unique(maintain_order=True)
    return dict(ruled.rows()) if ruled["rule"].n_unique() > 1 else {}


_PARTS = (("rule", "rule"), ("positions", "K"), ("lifetime", "lifetime"), ("world", "world"))


def labelled(frame: DataFrame) -> DataFrame:
    """The frame with labels for policies: what differs among the curves of a policy is added to its name.

    A rule is added too where policies differ in it: part of what they differ in is the rule's.

    >>> from dataclasses import replace
    >>> one = Result("q", "pbm", "kl-ucb-br", "paper:0.1", 5, 10, 1, [1], [0.0], [None], [0.0], [None], None)
    >>> in_order(labelled(means_of([one, replace(one, rule="paper:0.2", positions=3)])), "policy")
    ['kl-ucb-br rule=paper:0.1 K=5', 'kl-ucb-br rule=paper:0.2 K=3']
    >>> in_order(labelled(means_of([one, replace(one, policy="safe-draw", rule="anytime:0.1")])), "policy")
    ['kl-ucb-br rule=paper:0.1', 'safe-draw rule=anytime:0.1']
    >>> in_order(labelled(means_of([one])), "policy")
    ['kl-ucb-br']
    """

    def added(part: str, name: str) -> Expr:
        differs = col(part).n_unique().over("policy") > 1
        if part == "rule":
            differs |= col("policy").is_in(list(differing_rules(frame)))
        value = col(part).cast(String).fill_null("none")
        return when(differs).then(polars.concat_str(lit(f" {name}="), value)).otherwise(lit(""))

    return frame.with_columns(policy=polars.concat_str("policy", *(added(*part) for part in _PARTS)))
