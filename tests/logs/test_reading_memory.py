"""Memory does not depend on the size of the log."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from saferank.logs import read_log, write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances
from saferank.logs.tables.hashed_rows import new_rows, with_room


def peak_megabytes(path: Path) -> float:
    tracemalloc.start()
    try:
        read_log(path, "yandex-personalized", queries=1, chunk=1 << 18)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("model", ["cm"])  # whose users leave few different pages
def test_a_log_ten_times_as_long_takes_no_more_memory(model: str, tmp_path: Path) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    write_synthetic_log(short, planted_instances(2, model), 1000)
    write_synthetic_log(long, planted_instances(2, model), 10_000)
    assert long.stat().st_size > 9 * short.stat().st_size
    peak_megabytes(short)  # what is made once: compiled code
    assert peak_megabytes(long) < peak_megabytes(short) + 0.5
    assert peak_megabytes(long) < 10


def test_what_a_query_takes() -> None:
    table = with_room(new_rows(1, np.uint64), 20_000_000)
    assert table.slots.nbytes + table.rows.nbytes + table.weight.nbytes < 550e6
