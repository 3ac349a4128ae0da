"""The same users for every policy: common random numbers, so that differences between policies are paired.

The users of a run have a stream that depends on the seed, the query, its click model and the repetition, not on the
policy. It must not depend on the pages either: two policies that show the same page in the same round get the same
clicks, whatever they showed before. Under PBM, CM and UBM that needs nothing, because there a page takes one word per
position whatever is on it. Under the other models, and those of plug-ins, the number of draws depends on the clicks.
There every page has a stream of its own, made from one step of the users' stream.
"""

import functools
from typing import Any

import numpy as np

from saferank._kernel import implements, kernel, verb
from saferank.click_models import CM, PBM, UBM
from saferank.randomness import Words, following, load, store

_32 = np.uint64(32)
_FACTORS = tuple(
    np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93)
)


@kernel
def begin_page(users: Words, page: Words) -> None:
    """Fill ``page`` with the state of the next page's stream and move the users' stream by one step.

    Neighbouring states of xoshiro256++ overlap: the words of a page would be those of the next one, moved by a place.
    So every word w of the state becomes (w ^ (w >> 32)) times an odd number, modulo 2^64. That is one to one, hence
    never the state of zeros, and not linear over bits like the generator itself.
    """
    state = load(users)
    store(users, following(state))
    page[0] = (state[0] ^ (state[0] >> _32)) * _FACTORS[0]
    page[1] = (state[1] ^ (state[1] >> _32)) * _FACTORS[1]
    page[2] = (state[2] ^ (state[2] >> _32)) * _FACTORS[2]
    page[3] = (state[3] ^ (state[3] >> _32)) * _FACTORS[3]


@functools.partial(verb, default=True)
def next_user(model: Any, users: Words, page: Words) -> None:
    """Make ``page`` the stream from which the user of the next page draws; both begin as the users' stream."""
    begin_page(users, page)


@kernel
def _stay_in_step(model: Any, users: Words, page: Words) -> None:
    """A page takes one word per position, so the streams of two policies stay in step by themselves."""


for _model in (PBM, CM, UBM):
    implements(next_user, _model)(_stay_in_step)
