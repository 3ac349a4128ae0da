"""Arguments of the wrong kind, which a notebook may give: a sentence that names the argument, or what was meant."""

from typing import Any

import pytest

import saferank

SMALL: dict[str, Any] = {"queries": 1, "rounds": 20, "repetitions": 2, "jobs": 1, "progress": False, "positions": 2}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policies": 3}, "policies: found 3, expected names or classes of policies"),
        ({"policies": ["original", None]}, "policies: found None, expected names or classes of policies"),
        ({"models": "pmb"}, "models: unknown click model 'pmb'; .* did you mean 'pbm'"),
        ({"models": 3}, "models: unknown click model 3"),
        ({"checkpoints": "ten"}, "checkpoints: found 'ten', expected a whole number"),
        ({"world": {"delay": [1]}}, r"world: delay: found \[1\], expected a whole number of pages"),
    ],
)
def test_a_wrong_argument_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(saferank.UsageError, match=message):
        saferank.simulate(**{**SMALL, "policies": "original", **given})


def test_a_single_value_stands_for_a_list_of_one() -> None:
    single: dict[str, Any] = {"policies": "original", "models": "pbm", "checkpoints": 10, "world": {"delay": None}}
    found = saferank.simulate(**SMALL, **single)
    assert (found.policies, found.models) == (["original"], ["pbm"])
    assert found.means["round"].unique().sort().to_list() == [10, 20]
    assert found.plot(policies="original", models="pbm") is not None
    assert found.to_latex(policies="original") == found.to_latex()


@pytest.mark.parametrize("name", ["plugins", "without", "models", "policies"])
def test_lists_of_a_reproduction_are_not_taken_letter_by_letter(name: str, tmp_path: Any) -> None:
    given: dict[str, Any] = {name: "nonesuch"}
    with pytest.raises(saferank.ArgumentError, match="nonesuch"):
        saferank.reproduce(tmp_path, progress=False, **given)
