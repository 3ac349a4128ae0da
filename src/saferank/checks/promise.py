"""The promise of a policy that is registered with ``safe=True``: no page breaks the constraint.

It is tried against the worst case of ``saferank.safety``: over all orders of the items that agree with the certificates
which the policy has given, the page must stay within the allowance. A policy that gives none may show only pages that
are within it whatever the truth is. Certificates that contradict each other leave no order; from then on there is
nothing to hold the policy to.
"""

from typing import Any

from saferank.checks.contract import require
from saferank.policies import PolicyKind, Setup
from saferank.safety import whole_allowance
from saferank.safety.worst_case import MOST_SEATS, Possible


class Promise:
    """What the certificates of a policy allow it to show."""

    def __init__(self, kind: PolicyKind, setup: Setup, verbs: Any) -> None:
        self.kind, self.setup, self.verbs = kind, setup, verbs
        self._holds = kind.safe and setup.n_items <= MOST_SEATS
        self._taken = 0  # so many of the certificates are noted
        self._possible: Possible | None = None
        if self._holds:
            limit = whole_allowance(setup.n_items, setup.n_positions)
            self._possible = verbs.new_possible(setup.n_items, setup.n_positions, limit)

    def check(self, state: Any, shown: list[int]) -> None:
        """Raise a ``ContractError`` when the page can break the constraint."""
        possible = self._known(state)
        if possible is None:
            return
        code = sum(item << (4 * place) for place, item in enumerate(shown))
        limit, original = int(possible.limit[0]), list(range(self.setup.n_positions))
        require(
            self.verbs.at_most(possible, code, limit),
            f"{self.kind.name} is registered with safe=True, but shows {shown} in place of the original {original} of "
            f"{self.setup.n_items} items: an order that its certificates leave possible gives this page more than "
            f"{limit} wrong pairs beyond the original's. Keep every page within the worst case of "
            "saferank.safety.worst_case, give certificates (certifies=True), or register it without safe=True.",
        )

    def _known(self, state: Any) -> Possible | None:
        """The orders that the certificates of a state leave possible; None when they leave none."""
        possible = self._possible
        if possible is None or not self.kind.certifies:
            return possible
        kept = state.duels.certificates
        given = int(kept.given[0])
        pairs = zip(kept.better[self._taken : given], kept.worse[self._taken : given], strict=True)
        for winner, loser in ((int(winner), int(loser)) for winner, loser in pairs):
            if possible.better[winner] >> loser & 1 or winner == loser:
                self._possible = None
                return None
            if not possible.worse[winner] >> loser & 1:
                self.verbs.certify_seats(possible, winner, loser)
        self._taken = given
        return possible
