"""The kinds of pages that are served, and their numbers in the log and in tokens: never change one."""

from typing import get_args

from saferank.service.views import Arm

ARMS: tuple[Arm, ...] = get_args(Arm)
EXPLORE, HOLDOUT, OFF, SHADOW, FROZEN, REPEAT = range(6)

assert ARMS == ("explore", "holdout", "off", "shadow", "frozen", "repeat")
