"""How policies and click models are named and drawn; a policy's title and look come from its registration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from saferank.policies import POLICIES
from saferank.policies.registry import Look

INK, FAINT, ZERO = "#1c1c22", "#d7d7de", "#f1f1f4"
"""Text and axes, grid, the strip of curves that are zero: exact colours, which the page exchanges in the dark."""

_IN_THE_DARK = {INK: "#ececf1", FAINT: "#3b3c46", ZERO: "#2a2b34"}

PAPER_MODELS = ("pbm", "cm")
ORIGINAL = "original"
"""The policy that shows the original ranking forever: production."""


_OTHERS = (
    Look("#1c1c23", "#ececf2", (0, (4, 1, 1, 1)), "P"),
    Look("#5a3e00", "#c9a227", (0, (1, 2, 4, 2)), "d"),
    Look("#9c1f5f", "#ff93c9", (0, (8, 1, 1, 1, 1, 1)), "H"),
    Look("#066a70", "#3fb8bf", (0, (2, 4)), "1"),
)
_LINES: tuple[str | tuple[int, tuple[float, ...]], ...] = (
    "-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)),
)  # fmt: skip
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "*", ">", "p")
"""Lines and markers of curves that share a colour. Their numbers have no common divisor: 55 pairs differ."""


_NAMES: ContextVar[tuple[Mapping[str, str], Mapping[str, str]]] = ContextVar("names", default=({}, {}))
"""Other names of policies, and the rules in which their curves differ."""


@contextmanager
def labels(names: Mapping[str, str], rules: Mapping[str, str]) -> Iterator[None]:
    """Give policies other names while a report is made, and their curves the rules in which they differ."""
    token = _NAMES.set((names, rules))
    try:
        yield
    finally:
        _NAMES.reset(token)


def curve_name(policy: str) -> str:
    """The name of a policy's curve: with its rule where the curves of a report differ in it.

    >>> with labels({}, {"safe-draw": "anytime:1/T", "kl-ucb-br": "paper:1/T"}):
    ...     curve_name("kl-ucb-br"), curve_name("top-rank")
    ('KL-UCB-BR (paper:1/T)', 'TopRank')
    """
    names, rules = _NAMES.get()
    rule = None if policy in names else rules.get(policy)
    return policy_name(policy) if rule is None else f"{policy_name(policy)} ({rule})"


def _known_looks() -> dict[str, Look]:
    shown = {name: kind.shown_as for name, kind in POLICIES.items()}
    return {name: how.look for name, how in shown.items() if how is not None and how.look is not None}


def policy_name(policy: str) -> str:
    """The title of a policy; one that is not registered, or has no title, keeps its name.

    >>> policy_name("top-rank"), policy_name("mine"), policy_name("bubble-rank:all-candidates")
    ('TopRank', 'mine', 'BubbleRank')
    >>> policy_name("top-rank K=3")  # a label of a sweep
    'TopRank K=3'
    >>> policy_name("bubble-rank:hidden_duels=false K=3")  # hyper-parameters that were set
    'BubbleRank hidden_duels=false K=3'
    """
    if label := _NAMES.get()[0].get(policy):
        return label
    name, _, setting = policy.partition(" ")
    values = [text for text in name.split(":")[1:] if "=" in text]
    setting = " ".join([*values, *([setting] if setting else [])])
    kind = POLICIES.get(name.partition(":")[0])
    if kind is not None and kind.title and (not setting or "=" in setting):
        return f"{kind.title} {shortened(setting, 40)}".strip()
    return shortened(policy)


def model_name(model: str) -> str:
    """The name of a click model for headings.

    >>> model_name("pbm")
    'PBM'
    """
    return shortened(model.upper())


def shortened(text: str, length: int = 18) -> str:
    r"""Any name as one short line that can be drawn and written.

    >>> shortened("a name that does not stop"), shortened("two\nlines")
    ('a name that does …', 'two lines')
    """
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def looks_of(policies: list[str]) -> dict[str, Look]:
    """The look with which a policy is registered; others take theirs in the order in which they come.

    The rows of a sweep have the colour of their policy and differ in line and marker.

    >>> looks = looks_of(["top-rank K=3", "top-rank K=5"])
    >>> looks["top-rank K=3"].colour == looks["top-rank K=5"].colour == looks["top-rank"].colour
    True
    >>> looks["top-rank K=3"].marker, looks["top-rank K=5"].marker
    ('^', 's')
    """
    looks = _known_looks()
    taken: dict[str, int] = {}
    free = 0
    for policy in policies:
        if policy in looks:
            continue
        base = policy.partition(" ")[0].partition(":")[0]
        if base not in looks:
            looks[policy] = _varied(_OTHERS[free % len(_OTHERS)], free // len(_OTHERS))
            free += 1
            continue
        # The look itself belongs to the policy as it is; its first row may have it where that is not drawn.
        place = taken.get(base, int(base in policies))
        looks[policy], taken[base] = _varied(looks[base], place), place + 1
    return looks


def _varied(look: Look, place: int) -> Look:
    """The look itself, and for places above 0 its colour with another line and another marker."""
    if place == 0:
        return look
    return look._replace(line=_LINES[place % len(_LINES)], marker=_MARKERS[place % len(_MARKERS)])


def dark_colours() -> dict[str, str]:
    """Every colour of a figure and the one that takes its place on a dark page."""
    return _IN_THE_DARK | {look.colour: look.in_the_dark for look in (*_known_looks().values(), *_OTHERS)}
