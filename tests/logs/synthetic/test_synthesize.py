"""A synthetic log as one call: checked before anything is written, then the log and the truth about its users."""

from pathlib import Path
from typing import Any

import pytest

from saferank.errors import ArgumentError
from saferank.instances import load_instances
from saferank.logs import summarize_log
from saferank.logs.synthetic import synthesize_log


def test_the_log_and_its_truth(tmp_path: Path) -> None:
    log, truth = tmp_path / "log.gz", tmp_path / "truth.json"
    made = synthesize_log(log, 300, 3, "cm", truth=truth, progress=False)
    assert summarize_log(log, "yandex-personalized").sessions == 300
    users = load_instances(truth)
    assert [user.id for user in users] == [user.id for user in made]
    assert {user.model_name for user in users} == {"cm"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sessions": 0}, "sessions: found 0, expected at least 1"),
        ({"queries": 0}, "queries: found 0, expected at least 1"),
        ({"model": "nobody"}, "model: no embedded instances for click model 'nobody'"),
        ({"items": 5}, "items: found 5, expected at least 10, the page length"),
        ({"out": "-"}, "out: found -, expected the name of a file"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_written(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError) as problem:
        synthesize_log(**{"out": tmp_path / "log", "progress": False, **changes})
    assert message in str(problem.value)
    assert list(tmp_path.iterdir()) == []
