"""The kinds of pages that are served, and their numbers in the log and in tokens: never change one."""

from typing import Any, get_args

from saferank.service.wire.views import Arm

ARMS: tuple[Arm, ...] = get_args(Arm)
EXPLORE, HOLDOUT, OFF, SHADOW, REPEAT = range(5)

assert ARMS == ("explore", "holdout", "off", "shadow", "repeat")


def takes_part(arm: Any, share: Any) -> Any:
    """True for pages of which a visitor's first in a window counts: explored or in the holdout by its coin.

    Arguments are those of one page, or arrays.

    A page that was to be explored and failed its check is production's (``off``), and keeps its share: to leave it out
    of the comparison would depend on the coin.
    """
    return (arm == EXPLORE) | (arm == HOLDOUT) | (share > 0.0)
