"""The error that every check raises, and which part of the checked code it is about."""

from collections.abc import Iterator
from contextlib import contextmanager

from saferank.plugins import place_of


class ContractError(AssertionError):
    """A full sentence on how a policy, click model or store breaks its contract.

    ``place`` is the file and line of the part that breaks it, or None where it is not known; ``str()`` has both.
    """

    def __init__(self, sentence: str, place: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.place = place

    def __str__(self) -> str:
        return self.sentence if self.place is None else f"{self.place}: {self.sentence}"


def require(claim: bool, sentence: str) -> None:
    """Raise a ``ContractError`` with the sentence unless the claim holds."""
    if not claim:
        raise ContractError(sentence)


@contextmanager
def blaming(part: object) -> Iterator[None]:
    """A ``ContractError`` inside that does not know its place is about this function or class."""
    try:
        yield
    except ContractError as problem:
        problem.place = problem.place or place_of(part)
        raise
