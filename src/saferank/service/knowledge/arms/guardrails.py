"""The guardrails of a tenant: one for each context and one over all contexts share the error probability."""

from saferank.statistics.effect import Guardrail


def context_guardrail(drop: float, error: float, number: int, most: int) -> Guardrail:
    """The guardrail of context ``number``, which counts contexts from 1 as they are opened.

    Over all contexts that there will ever be, error / (2 n (n + 1)) sums up to at most half of the error.
    """
    return Guardrail(drop, error / (2 * number * (number + 1)), most)


def tenant_guardrail(drop: float, error: float, most: int) -> Guardrail:
    """The guardrail over all contexts of a tenant has the other half."""
    return Guardrail(drop, error / 2, most)
