"""What the data are is said of every kind of results, and never taken from nowhere."""

from pathlib import Path
from typing import Any

import pytest

from saferank.reporting.data import data_of
from saferank.reporting.frames import means_of
from saferank.reporting.reading import Run

DIGEST = "0123456789abcdef" * 4
LOG = {"name": "log.gz", "synthetic": True, "pages": 1234, "queries": 20, "sha256": DIGEST}


@pytest.mark.parametrize(
    ("provenance", "name", "detail"),
    [
        ({"reproduction": {"log": LOG}}, "a synthetic log with planted users", "1,234 pages of 20 queries"),
        (
            {"reproduction": {"log": {**LOG, "name": "train.gz", "format": "sessions", "synthetic": False}}},
            "the log train.gz (SHA-256 0123456789ab…)",
            "from the log train.gz, format sessions: 1,234 pages of 20 queries",
        ),
        ({"reproduction": {"log": {"name": "old.gz"}}}, "the log old.gz", "from the log old.gz"),
        ({"instances": {"name": "embedded", "played": 40}}, "the embedded instances, which are synthetic", "40 inst"),
        (
            {"instances": {"name": "mine.json", "sha256": DIGEST}},
            "the instances of mine.json (SHA-256 0123456789ab…)",
            "its author knows",
        ),
        (
            {"instances": {"name": None, "played_sha256": DIGEST}},
            "instances that were given as objects (SHA-256 0123456789ab…)",
            "in Python",
        ),
        ({}, "data that the results do not name", "do not say"),
        ({"reproduction": 3, "instances": "x"}, "data that the results do not name", "do not say"),
    ],
)
def test_every_kind_of_data_is_named(provenance: dict[str, Any], name: str, detail: str) -> None:
    data = data_of(Run(Path("results.json"), means_of([]), provenance))
    assert data.name == name
    assert detail in data.detail


def test_a_synthetic_log_is_not_taken_for_the_paper_s() -> None:
    assert "The log that the paper used is not part of this run" in data_of(
        Run(Path("results.json"), means_of([]), {"reproduction": {"log": LOG}})
    ).detail.replace("\n", " ")
