"""What a reproduction runs: the profiles, and the protocol that options make of one."""

from dataclasses import asdict, dataclass
from typing import Any

from saferank.fitting import estimator
from saferank.simulation.experiment import Plan

PARTS = ("additions", "sensitivity", "study")
"""What is played besides the paper's own experiment: our own policies beside its five, and two studies."""


@dataclass(frozen=True)
class Sizes:
    """How much is played; rounds and everything else are the paper's in all profiles."""

    queries: int
    repetitions: int
    sessions: int  # of the synthetic log
    sensitivity_queries: int
    sensitivity_repetitions: int
    study_queries: int  # of each set
    study_repetitions: int


PROFILES = {
    "quick": Sizes(20, 10, 100_000, 10, 10, 10, 5),
    "paper": Sizes(100, 100, 300_000, 20, 20, 20, 20),
}


@dataclass(frozen=True)
class Protocol:
    """Everything that the results depend on, apart from the log."""

    profile: str
    sizes: Sizes
    policies: tuple[str, ...]
    models: tuple[str, ...]
    rule: str
    positions: int
    items: int
    rounds: int
    seed: int
    iterations: int
    parts: tuple[str, ...]
    page_length: int | None = None  # of the rankings; None: 10 where a query has such a page, else its most frequent

    def __post_init__(self) -> None:
        for model in self.models:
            estimator(model)
        unknown = [part for part in self.parts if part not in PARTS]
        if unknown:
            raise ValueError(f"unknown part {unknown[0]!r}; known ones: {', '.join(PARTS)}")
        if self.items < self.positions:
            raise ValueError(f"items is {self.items}, expected at least {self.positions}, the positions")
        self.plan()

    def plan(self, repetitions: int | None = None, **changes: Any) -> Plan:
        """How the paper's experiment is played, or another part with these changes."""
        given = {"policies": self.policies, "rule": self.rule, **changes}
        return Plan(
            n_positions=self.positions,
            rounds=self.rounds,
            repetitions=self.sizes.repetitions if repetitions is None else repetitions,
            seed=self.seed,
            **given,
        )

    def facts(self) -> dict[str, Any]:
        """The protocol as it is kept in a file."""
        facts = asdict(self)
        return {**facts.pop("sizes"), **{key: list(v) if isinstance(v, tuple) else v for key, v in facts.items()}}
