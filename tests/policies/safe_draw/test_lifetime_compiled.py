"""safe-draw whose certificates have a lifetime, compiled: equal to its transcription, and the stated error."""

import math

import numpy as np

from saferank.policies import POLICIES, Setup
from saferank.randomness import stream
from saferank.statistics.decision import decision_rule
from saferank.verbs import new_impression
from tests.policies.at_work import AtWork
from tests.policies.safe_draw import lifetime_cases as safe_draw_lifetime_cases


def test_compiled_it_equals_its_transcription() -> None:
    certificates, targets = safe_draw_lifetime_cases.play((4, 3), 80, 1, 400)
    assert certificates > 5 and targets > 5


def test_equal_items_are_certified_in_an_epoch_with_at_most_the_stated_error() -> None:
    """By the theorem each of 12 ordered pairs of 4 items is certified by an epoch's stream with probability <= alpha.

    Per epoch the number of certificates lies between 0 and 12, has mean at most 12 alpha and so variance at most
    144 alpha; over 120 epochs the bound is three standard deviations above, exceeded with probability below 1 % if the
    theorem were tight (it is not). The seed is fixed. The streams that certify are those of one epoch each.
    """
    alpha, epochs, length = 0.05, 120, 250
    setup = Setup(4, 3, decision_rule(f"anytime:{alpha}"), lifetime=length)
    kind = POLICIES["safe-draw"]
    state = AtWork(kind, setup)
    words, users, page = stream(1, "policy"), np.random.default_rng(1), new_impression(3, 4)
    for _ in range(epochs * length):
        state.choose(words, page)
        state.learn(page, (users.random(3) < 0.5).astype(np.int64))
    certificates = int(state.duels.certificates.given[0])
    assert certificates <= epochs * 12 * alpha + 3 * math.sqrt(epochs * 144 * alpha)
    assert certificates > 0, "there is something that could have been too much"
