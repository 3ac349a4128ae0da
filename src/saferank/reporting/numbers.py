"""Measured numbers, and how they are written."""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

_DIGITS_OF_ERROR = 2

CHANCE = 0.05
"""Share of the queries without a difference on which chance is taken for one."""
_RUNS_TO_BE_SURE = 6
"""Minimum of runs whose equal differences are no chance at that level (sign test: 2 / 2^6)."""


@functools.cache
def student(chance: float, freedom: float) -> float:
    """How many standard errors chance exceeds, to either side, with this probability (Student's t).

    >>> [round(student(0.05, freedom), 2) for freedom in (1, 9, math.inf)]
    [12.71, 2.26, 1.96]
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - chance / 2))


def freedom_of(errors: Sequence[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum whose parts have these standard errors and degrees (Welch and Satterthwaite).

    >>> freedom_of([(1.0, 9), (0.0, 9)]), freedom_of([(1.0, 9), (1.0, 9)]), freedom_of([])
    (9.0, 18.0, inf)
    """
    below = sum(error**4 / freedom for error, freedom in errors if error > 0)
    return float(sum(error**2 for error, _ in errors)) ** 2 / below if below > 0 else math.inf


def is_clear(difference: float, stderr: float | None, freedom: float) -> bool | None:
    """True where a difference is beyond chance; None where a single run does not tell.

    >>> is_clear(5.0, 1.0, 9), is_clear(5.0, 1.0, 1), is_clear(5.0, None, 0)
    (True, False, None)
    """
    if stderr is None:
        return None
    if stderr == 0:
        return difference != 0 and freedom + 1 >= _RUNS_TO_BE_SURE
    return abs(difference) > student(CHANCE, freedom) * stderr


class Measured(NamedTuple):
    """A mean, its standard error (None where single runs have none) and the degrees of freedom of that.

    Of a mean over queries the standard error is that within them; ``across`` is the one across them.
    """

    mean: float
    stderr: float | None
    freedom: float = math.inf
    across: float | None = None

    def minus(self, other: "Measured", share: float = 1.0) -> "Measured":
        """The difference from a share of another mean, which is independent (Welch and Satterthwaite).

        >>> Measured(20.0, 3.0, 9).minus(Measured(20.0, 8.0, 9), 0.5)[:2]
        (10.0, 5.0)
        """
        mean = self.mean - share * other.mean
        if self.stderr is None or other.stderr is None:
            return Measured(mean, None)
        errors = [(self.stderr, self.freedom), (share * other.stderr, other.freedom)]
        return Measured(mean, math.hypot(self.stderr, share * other.stderr), freedom_of(errors))

    def __str__(self) -> str:
        """As many digits as the standard error allows.

        >>> str(Measured(4294.5, 71.1)), str(Measured(0.0132, 0.0021)), str(Measured(23111.9, 0.0))
        ('4,294 ± 71', '0.0132 ± 0.0021', '23,112')
        """
        mean = 0.0 if abs(self.mean) < 1e-6 else self.mean
        if self.stderr is None or self.stderr <= 1e-9 * max(1.0, abs(mean)):
            return plainly(mean)
        decimals = min(9, max(0, _DIGITS_OF_ERROR - 1 - math.floor(math.log10(self.stderr))))
        return f"{mean:,.{decimals}f} ± {self.stderr:,.{decimals}f}"


def plainly(value: float) -> str:
    """A number with about four digits.

    >>> plainly(23111.9), plainly(0.25), plainly(0), plainly(12.3456)
    ('23,112', '0.25', '0', '12.35')
    """
    if value == 0:
        return "0"
    decimals = min(9, max(0, 3 - math.floor(math.log10(abs(value)))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(number: int, one: str, several: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "instance"), counted(2000, "instance"), counted(1, "query", "queries")
    ('1 instance', '2,000 instances', '1 query')
    """
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def ratio(above: Measured, below: Measured) -> Measured | None:
    """The ratio of two independent means; None when there is nothing to divide by.

    The relative errors add in squares, to first order.

    >>> str(ratio(Measured(30.0, 3.0), Measured(60.0, 6.0)))
    '0.500 ± 0.071'
    """
    if below.mean <= 0:
        return None
    value = above.mean / below.mean
    if above.stderr is None or below.stderr is None:
        return Measured(value, None)
    return Measured(value, math.hypot(above.stderr, value * below.stderr) / below.mean)


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
