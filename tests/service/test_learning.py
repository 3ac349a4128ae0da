"""The kernels that a service has ready before its first call."""

import pytest

from saferank.learner import Learner
from saferank.service.learning import warm_up


@pytest.mark.parametrize("policy", ["kl-ucb-br", "bubble-rank"])
def test_small_and_large_catalogues_are_warmed_up(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that is compiled on the first large catalogue would stop all callers for some twenty seconds."""
    used: list[tuple[str, str]] = []
    for name in ("preview", "issue", "fold", "rebase", "explain"):

        def noted(self: Learner, *args: object, name: str = name, real: object = getattr(Learner, name)) -> object:
            used.append((name, type(self.state.duels).__name__))
            return real(self, *args)  # type: ignore[operator]

        monkeypatch.setattr(Learner, name, noted)
    warm_up(policy, "paper:1e-5")
    for name in ("preview", "issue", "fold", "rebase", "explain"):
        assert {(name, "DenseDuels"), (name, "HashedDuels")} <= set(used)
