"""How policies are called and drawn: the paper's names and colours, with line styles and markers of their own."""

from typing import NamedTuple

INK, FAINT, ZERO = "#1c1c22", "#d7d7de", "#f1f1f4"
"""Text and axes, grid, the strip of curves that are zero: exact colours, which the page exchanges in the dark."""

_IN_THE_DARK = {INK: "#ececf1", FAINT: "#3b3c46", ZERO: "#2a2b34"}

PAPER_MODELS = ("pbm", "cm")


class Look(NamedTuple):
    """Colour, line and marker: any one of them tells curves apart, also in grey or for colour-blind eyes."""

    colour: str
    in_the_dark: str
    line: str | tuple[int, tuple[float, ...]]
    marker: str


_LOOKS = {
    "kl-ucb-br": Look("#d9730d", "#f59a3e", "-", "o"),
    "bubble-rank": Look("#c51b2c", "#ff6b74", (0, (5, 1.6)), "s"),
    "top-rank": Look("#2166ac", "#6cb0f5", (0, (6, 1.5, 1.2, 1.5)), "^"),
    "uni-rank": Look("#1b8a4a", "#4fc983", (0, (3, 1.2, 1, 1.2, 1, 1.2)), "D"),
    "original": Look("#75757d", "#a3a3ad", (0, (1.2, 1.5)), "X"),
    "safe-blocks": Look("#7b2f94", "#cf8fe6", (0, (9, 2)), "v"),
    "safe-order": Look("#4343c4", "#9d9dff", (0, (9, 2, 2, 2)), "<"),
}
_OTHERS = (
    Look("#1c1c23", "#ececf2", (0, (4, 1, 1, 1)), "P"),
    Look("#8c510a", "#d9a05b", (0, (2, 1)), "*"),
    Look("#b8187b", "#f57dc0", (0, (7, 1, 2, 1)), "h"),
    Look("#0b7a80", "#4cc4ca", (0, (3, 3)), "p"),
)

_NAMES = {
    "kl-ucb-br": "KL-UCB-BR",
    "bubble-rank": "BubbleRank",
    "top-rank": "TopRank",
    "uni-rank": "UniRank",
    "original": "OriginalRank",
    "safe-blocks": "SafeBlocks",
    "safe-order": "SafeOrder",
}


def policy_name(policy: str) -> str:
    """The name of a policy as the paper writes it; a policy of somebody else's keeps its own.

    >>> policy_name("top-rank"), policy_name("mine"), policy_name("bubble-rank:all-candidates")
    ('TopRank', 'mine', 'BubbleRank')
    """
    return _NAMES.get(policy.partition(":")[0]) or shortened(policy)


def model_name(model: str) -> str:
    """The name of a click model for headings.

    >>> model_name("pbm")
    'PBM'
    """
    return shortened(model.upper())


def shortened(text: str, length: int = 18) -> str:
    r"""A name of somebody's as one short line that can be drawn and written.

    >>> shortened("a name that does not stop"), shortened("two\nlines")
    ('a name that does …', 'two lines')
    """
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def looks_of(policies: list[str]) -> dict[str, Look]:
    """The paper's colours for its policies; others take theirs in the order in which they come."""
    others = [policy for policy in policies if policy not in _LOOKS]
    return _LOOKS | {policy: _OTHERS[place % len(_OTHERS)] for place, policy in enumerate(others)}


def dark_colours() -> dict[str, str]:
    """Every colour of a figure and the one that takes its place on a dark page."""
    return _IN_THE_DARK | {look.colour: look.in_the_dark for look in (*_LOOKS.values(), *_OTHERS)}
