"""Random words for kernels: xoshiro256++ on a four-word state that the caller owns.

Every draw is an explicit call with the state as its argument; a run depends on its seed alone, never on threads,
order or a hidden generator. What each call consumes is part of the contract, because the slow transcriptions in
``tests/reference/`` draw the same numbers:

* ``word`` one 64-bit word; ``uniform`` the upper 53 bits of one word; ``below`` the upper half of one word (Lemire's
  multiplication, exact by rejection, so very rarely more); ``shuffle_front`` one ``below`` for each place that has a
  choice;
* ``normal`` two uniforms; ``gamma`` a normal and a uniform an attempt; ``beta`` two gammas.
"""

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from saferank._kernel import kernel

Words = NDArray[np.uint64]
State = tuple[np.uint64, np.uint64, np.uint64, np.uint64]

_5, _11, _17, _19, _23, _32, _41, _45, _64 = (np.uint64(k) for k in (5, 11, 17, 19, 23, 32, 41, 45, 64))
_LOW = np.uint64(0xFFFFFFFF)
_ZERO, _INSTEAD_OF_ZEROS = np.uint64(0), np.uint64(0x9E3779B97F4A7C15)


def stream(seed: int, *key: str | int) -> Words:
    """The state of an independent stream, determined by the seed and the key alone.

    >>> [int(x) % 1000 for x in stream(7, "pbm", 3)]
    [271, 436, 627, 717]
    """
    text = "\0".join(f"{type(part).__name__}:{part}" for part in key)
    entropy = int.from_bytes(hashlib.sha256(text.encode()).digest(), "little")
    return np.random.SeedSequence([seed, entropy]).generate_state(4, np.uint64).astype(np.uint64)


@kernel
def load(rng: Words) -> State:
    """The state as four numbers, which a loop keeps in registers; ``store`` them when it is done.

    Four zeros would be followed by zeros forever, and what draws again until something fits would never end. No seed
    leads there, but the words may come from elsewhere: they are taken as another state, always the same.
    """
    if rng[0] | rng[1] | rng[2] | rng[3] == _ZERO:
        return _INSTEAD_OF_ZEROS, _INSTEAD_OF_ZEROS, _INSTEAD_OF_ZEROS, _ZERO
    return rng[0], rng[1], rng[2], rng[3]


@kernel
def store(rng: Words, state: State) -> None:
    """Put a state back."""
    rng[0], rng[1], rng[2], rng[3] = state


@kernel
def output(state: State) -> np.uint64:
    """The 64 random bits of a state."""
    total = state[0] + state[3]
    return np.uint64(((total << _23) | (total >> _41)) + state[0])


@kernel
def following(state: State) -> State:
    """The state after this one."""
    s0, s1, s2, s3 = state
    shifted = s1 << _17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    return s0, s1, s2, (s3 << _45) | (s3 >> _19)


@kernel
def as_uniform(bits: np.uint64) -> float:
    """A number in [0, 1), a multiple of 2^-53."""
    return np.int64(bits >> _11) * 1.1102230246251565e-16


@kernel
def word(rng: Words) -> np.uint64:
    """The next 64 random bits."""
    state = load(rng)
    store(rng, following(state))
    return output(state)


@kernel
def uniform(rng: Words) -> float:
    """The next number in [0, 1)."""
    return as_uniform(word(rng))


@kernel
def below(rng: Words, n: int) -> int:
    """A whole number in 0..n-1, each equally likely (n < 2^32)."""
    number, state = below_from(load(rng), n)
    store(rng, state)
    return number


@kernel
def below_from(state: State, n: int) -> tuple[int, State]:
    """The same from a state in registers, and the state after it."""
    bound = np.uint64(n)
    product = (output(state) >> _32) * bound
    state = following(state)
    if (product & _LOW) < bound:
        short = (np.uint64(1) << _32) % bound
        while (product & _LOW) < short:
            product = (output(state) >> _32) * bound
            state = following(state)
    return int(np.int64(product >> _32)), state


@kernel
def shuffle_front(rng: Words, items: NDArray[np.uint32], start: int, stop: int, end: int) -> None:
    """Fill places start..stop-1 with a uniform draw without replacement from items[start:end], in place."""
    for place in range(start, min(stop, end - 1)):
        other = place + below(rng, end - place)
        held = items[place]
        items[place] = items[other]
        items[other] = held


@kernel
def normal(rng: Words) -> float:
    """A standard normal number, from two uniform ones: the radius first, then the angle (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(rng)))
    return radius * math.cos(2.0 * math.pi * uniform(rng))


@kernel
def gamma(rng: Words, shape: float) -> float:
    """A Gamma number of rate 1: Marsaglia and Tsang (2000), exact by rejection; a shape below 1 by that of shape + 1.

    Each attempt takes a normal number and, if it is in range, a uniform one; a shape below 1 takes one more uniform
    number at the end.
    """
    d = (shape if shape >= 1.0 else shape + 1.0) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(rng)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(1.0 - uniform(rng)) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
                break
    if shape >= 1.0:
        return d * v
    return d * v * math.pow(1.0 - uniform(rng), 1.0 / shape)


@kernel
def beta(rng: Words, a: float, b: float) -> float:
    """A Beta(a, b) number: of two Gamma numbers, the share of the first."""
    first = gamma(rng, a)
    return first / (first + gamma(rng, b))
