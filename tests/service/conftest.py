"""Chance in tests of the service comes from a seed: what fails once fails again."""

import random

import pytest

from saferank.service import identifiers
from saferank.store import sql


@pytest.fixture(autouse=True)
def seeded_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coins of unknown visitors, and the keys of new stores, from which all other coins follow."""
    dice = random.Random(20)
    monkeypatch.setattr(identifiers, "chance", dice.randbytes)
    monkeypatch.setattr(sql, "token_bytes", dice.randbytes)
