"""The split into pages to learn from and pages held out."""

import numpy as np
import pytest

from saferank.logs import ClickLog, read_log, split, write_synthetic_log
from saferank.logs.synthetic.writing import planted_instances


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> ClickLog:
    path = tmp_path_factory.mktemp("split") / "log"
    write_synthetic_log(path, planted_instances(3, "pbm"), sessions=4000)
    return read_log(path, "yandex-personalized")


def weights(log: ClickLog) -> dict[tuple[bytes, bytes], int]:
    rows = zip(log.pages.items, log.pages.clicks, log.pages.weight, strict=True)
    return {(items.tobytes(), clicks.tobytes()): int(weight) for items, clicks, weight in rows}


def test_the_parts_add_up_and_have_the_same_names(log: ClickLog) -> None:
    train, test = split(log, 0.25, seed=1)
    whole, of_train, of_test = weights(log), weights(train), weights(test)
    assert whole == {page: of_train.get(page, 0) + of_test.get(page, 0) for page in whole}
    assert min(*of_train.values(), *of_test.values()) > 0
    for part in (train, test):
        assert (part.queries, part.pairs, part.rankings) == (log.queries, log.pairs, log.rankings)


def test_single_pages_are_drawn_not_distinct_ones(log: ClickLog) -> None:
    """The most frequent page is in both parts; the share of all is 1/4 within five standard errors (error 1e-6)."""
    train, test = split(log, 0.25, seed=2)
    assert len(test.pages.weight) < len(log.pages.weight)
    heaviest = max(weights(log), key=lambda page: weights(log)[page])
    assert weights(train)[heaviest] > weights(test)[heaviest] > 0
    n = int(log.pages.weight.sum())
    assert abs(int(test.pages.weight.sum()) - n / 4) < 5 * np.sqrt(n * 3 / 16)


def test_the_seed_decides(log: ClickLog) -> None:
    one, again, other = (weights(split(log, 0.5, seed=seed)[1]) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("held_out", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_is_between_0_and_1(held_out: float, log: ClickLog) -> None:
    with pytest.raises(ValueError, match=r"held_out is .*, expected a share between 0 and 1"):
        split(log, held_out)
