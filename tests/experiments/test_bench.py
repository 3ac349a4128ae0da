"""A benchmark as one call: every policy under every model, and the same as JSON."""

import json

import pytest

from saferank.errors import ArgumentError
from saferank.experiments.bench import bench


def test_every_policy_under_every_model() -> None:
    found = bench(["original"], ["pbm", "cm"], rounds=50, positions=3, progress=False)
    assert [(timing.policy, timing.model) for timing in found.timings] == [("original", "pbm"), ("original", "cm")]
    facts = json.loads(json.dumps(found.to_dict()))
    assert (facts["positions"], facts["rounds"], facts["speed_up"]["jobs"]) == (3, 50, 2)
    assert [each["multiple"] for each in facts["timings"]] == [timing.multiple for timing in found.timings]


def test_models_that_do_not_exist() -> None:
    with pytest.raises(ArgumentError, match="models: "):
        bench(["original"], ["nobody"], rounds=50, progress=False)


def test_pages_that_are_longer_than_the_queries() -> None:
    with pytest.raises(ArgumentError, match=r"positions: .* found 10 for 100 positions"):
        bench(["original"], ["pbm"], rounds=50, positions=100, progress=False)
