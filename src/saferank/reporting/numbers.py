"""Measured numbers, and how they are written."""

import math
from typing import NamedTuple

_DIGITS_OF_ERROR = 2


class Measured(NamedTuple):
    """A mean and its standard error, None where single runs have none."""

    mean: float
    stderr: float | None

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
