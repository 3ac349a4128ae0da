"""``saferank.fit``: a file, a list of sessions and frames say the same, and PBM on the scale of its first position."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from saferank import fit
from saferank.errors import ArgumentError
from saferank.logs import LogError

ITEMS = [f"item-{n}" for n in range(5)]
SMALL: dict[str, Any] = {"models": ["pbm"], "iterations": 5, "progress": False}


@pytest.fixture(scope="module")
def sessions() -> list[dict[str, Any]]:
    """Pages of one query in several orders."""
    random, pages = np.random.default_rng(3), []
    for _ in range(400):
        items = [ITEMS[n] for n in (random.permutation(5) if random.random() < 0.5 else range(5))]
        clicked = [item for k, item in enumerate(items) if random.random() < 0.5 / (k + 1)]
        pages.append({"query": "q", "items": items, "clicked": clicked})
    return pages


def test_sessions_are_taken_as_file_list_and_frames(sessions: list[dict[str, Any]], tmp_path: Path) -> None:
    path = tmp_path / "log.ndjson"
    path.write_text("".join(json.dumps(page) + "\n" for page in sessions))
    known = fit(path, "sessions", replicates=2, **SMALL)
    for given in (sessions, polars.DataFrame(sessions), pandas.DataFrame(sessions)):
        found = fit(given, replicates=2, **SMALL)
        assert found.log == "400 sessions" and found.summary.format == "sessions"
        assert found.instances[0].model.attraction.tolist() == known.instances[0].model.attraction.tolist()
        assert found.errors[0].model.examination.tolist() == known.errors[0].model.examination.tolist()
    with pytest.raises(LogError, match="found int, expected a log file, a frame or a list of pages"):
        fit(7, **SMALL)


def test_the_scale_of_the_first_position_leaves_click_through_as_it_is(sessions: list[dict[str, Any]]) -> None:
    as_found, first = (fit(sessions, replicates=0, normalize=n, **SMALL).instances[0].model for n in (None, "first"))
    assert first.examination[0] == 1.0 and np.all(first.examination <= 1)
    below = as_found.examination <= as_found.examination[0]
    expected = np.outer(as_found.attraction, as_found.examination)
    assert np.outer(first.attraction, first.examination)[:, below] == pytest.approx(expected[:, below])
    with pytest.raises(ArgumentError, match="normalize: found 'last', expected first or None"):
        fit(sessions, normalize="last", **SMALL)


def test_a_fit_prints_as_tables(sessions: list[dict[str, Any]]) -> None:
    text = repr(fit(sessions, replicates=0, evaluate=0.25, **SMALL))
    assert text.startswith("Fit of pbm to 400 sessions: 1 queries")
    assert "estimation\nmodel  iterations" in text and "perplexity by position" in text
