"""Results for pandas, and the ends of all curves as tables."""

from typing import TYPE_CHECKING

from saferank.reporting.numbers import plainly
from saferank.reporting.pooling import ending, pooled
from saferank.table import TextTable

if TYPE_CHECKING:
    import pandas
    from polars import DataFrame


def pandas_frame(frame: "DataFrame") -> "pandas.DataFrame":
    """The same rows for pandas."""
    try:
        import pandas
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError("to_pandas() needs pandas: pip install 'saferank[pandas]'") from problem
    return pandas.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def long_table(means: "DataFrame", headline: str = "") -> TextTable:
    """The ends of all curves for a screen or a notebook: one row per click model and policy."""
    columns = ["model", "policy", "regret", "violations a run", "wrong certificates"]
    ends = [(each, ending(each)) for each in pooled(means)]
    rows = [
        [each.model, each.policy, str(end.regret), plainly(end.violations.mean), end.wrong_certificates]
        for each, end in ends
    ]
    title = f"{headline}after {max(means['round']):,} rounds, averaged over instances"
    return TextTable(title, columns, rows, names=2)
