"""Guardrails of contexts and of a tenant share one error probability."""

import numpy as np
import pytest

from saferank.service.knowledge.arms import GUARDRAIL_ERROR, context_guardrail, tenant_guardrail
from tests.statistics.effect.simulated_pages import Looks, alarms, batches, looks_of

RUNS, CONTEXTS, PAGES, SHARE = 2000, 4, 500, 0.3


def test_all_errors_together_are_at_most_the_stated_one() -> None:
    errors = [context_guardrail(0.03, number, 10).error for number in range(1, 20_001)]
    assert sum(errors) + tenant_guardrail(0.03, 10).error == pytest.approx(GUARDRAIL_ERROR, rel=1e-4)
    assert sum(errors) + tenant_guardrail(0.03, 10).error < GUARDRAIL_ERROR


def test_false_stops_of_a_tenant_with_several_contexts_that_are_looked_at_after_every_page() -> None:
    """2,000 A/A runs. Contexts differ in their clicks (5 % to 95 %), the base changes every 50 pages, and contexts take
    turns. A run is stopped wrongly when any of its guardrails stops at any page: at most 1 % may be."""
    stopped = 0
    for size, rng in batches(RUNS, 100, seed=31):
        any_stop, whole = np.zeros(size, bool), Looks(*(np.zeros((size, PAGES)) for _ in range(4)))
        for number in range(1, CONTEXTS + 1):
            rates = np.repeat(rng.uniform(0.05, 0.95, (size, PAGES // 50)), 50, axis=1)
            held_out = rng.random((size, PAGES)) < SHARE
            looks = looks_of(held_out, (rng.random((size, PAGES)) < rates).astype(float), SHARE)
            any_stop |= alarms(looks, 0.0, context_guardrail(0.0, number, 1).error).any(axis=1)
            whole = Looks(*(total + part for total, part in zip(whole, looks, strict=True)))
        any_stop |= alarms(whole, 0.0, tenant_guardrail(0.0, 1).error).any(axis=1)
        stopped += int(any_stop.sum())
    assert stopped <= GUARDRAIL_ERROR * RUNS
