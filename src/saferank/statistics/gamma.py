"""Random numbers from the normal and the Gamma law, exact and without memory."""

import math

from saferank._kernel import kernel
from saferank.randomness import Words, uniform


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
