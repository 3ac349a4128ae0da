"""What every check raises, and how it is said."""


class ContractError(AssertionError):
    """A full sentence on how a policy, click model or store breaks its contract."""


def require(claim: bool, sentence: str) -> None:
    """Raise a ``ContractError`` with the sentence unless the claim holds."""
    if not claim:
        raise ContractError(sentence)
