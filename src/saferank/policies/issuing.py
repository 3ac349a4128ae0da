"""What issuing a page does to a state, apart from the page: a log is replayed by counting pages, not by choosing again.

The coins of a page are frozen with it when it is issued. To bring a state to where it was, the log says that a page was
issued, and what was on it is needed only when its clicks are learnt.
"""

import functools
from typing import Any

from saferank._kernel import verb


@functools.partial(verb, default=True)
def count_issued(policy: Any, state: Any, pages: int) -> None:
    """Count pages as issued under the present leader, as ``choose`` counts one; a negative number takes back."""
    state.round[0] += pages
