"""Names for the rows of results: the policy, and what else tells rows of one policy apart."""

from collections.abc import Sequence
from dataclasses import replace

from saferank.simulation.results import Result

_PARTS = (("rule", "rule"), ("positions", "K"), ("lifetime", "lifetime"), ("world", "world"))


def labelled(curves: Sequence[Result]) -> list[Result]:
    """The curves with labels for policies: what differs among the curves of a policy is added to its name.

    >>> from saferank.simulation.results import Result
    >>> one = Result("q", "pbm", "kl-ucb-br", "paper:0.1", 5, 10, 1, [1], [0.0], [None], [0.0], [None], None)
    >>> [curve.policy for curve in labelled([one, replace(one, rule="paper:0.2", positions=3)])]
    ['kl-ucb-br rule=paper:0.1 K=5', 'kl-ucb-br rule=paper:0.2 K=3']
    >>> labelled([one])[0].policy
    'kl-ucb-br'
    """
    varying = {policy: _varying(curves, policy) for policy in {curve.policy for curve in curves}}
    return [replace(curve, policy=_label(curve, varying[curve.policy])) for curve in curves]


def _varying(curves: Sequence[Result], policy: str) -> list[tuple[str, str]]:
    """The parts in which the curves of a policy differ, each with its short name."""
    own = [curve for curve in curves if curve.policy == policy]
    return [(part, name) for part, name in _PARTS if len({getattr(curve, part, None) for curve in own}) > 1]


def _label(curve: Result, parts: Sequence[tuple[str, str]]) -> str:
    values = [(name, getattr(curve, part, None)) for part, name in parts]
    return " ".join([curve.policy, *(f"{name}={'none' if value is None else value}" for name, value in values)])
