"""What issuing a page does beside choosing it: counting, and noting what late feedback needs.

The coins of a page are frozen with it when it is issued. To bring a state to where it was, the log says that a page was
issued, and what was on it is needed only when its clicks are learnt.
"""

import functools
from typing import Any

from saferank._kernel import verb
from saferank.verbs import Impression


@functools.partial(verb, default=True)
def count_issued(policy: Any, state: Any, pages: int) -> None:
    """Count pages as issued under the present leader, as ``choose`` counts one; a negative number takes back."""
    state.round[0] += pages


@functools.partial(verb, default=True)
def freeze(policy: Any, state: Any, impression: Impression) -> None:
    """Note on a page that was just chosen what ``learn`` would otherwise ask the state, which changes until then.

    The simulator does without: there the clicks come before anything changes. Most policies need nothing.
    """


@functools.partial(verb, default=True)
def shows_one_page(policy: Any) -> bool:
    """True when every page of the policy is the same, whatever is clicked.

    The simulator then asks for one page and simulates no further clicks: regret is of expected rewards.
    """
    return False
