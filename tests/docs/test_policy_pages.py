"""Pages of the algorithms: their examples run, and the trace of KL-UCB-BR is what the algorithm does."""

import re
from math import log, sqrt
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, code_blocks
from tests.reference.policies import KlUcbBr

LETTER = "safe-draw-to-the-letter.md"  # a program in parts, run by a test of its own
PAGES = sorted(
    page
    for folder in ("policies", "algorithms")
    for page in (ROOT / "docs" / folder).glob("*.md")
    if page.name != LETTER
)
EXAMPLES = [(page, block) for page in PAGES for block in code_blocks(page)]
ITEMS = "abcde"


@pytest.mark.parametrize(("page", "block"), EXAMPLES, ids=[page.stem for page, _ in EXAMPLES])
def test_an_example_prints_what_it_says(page: Path, block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, str(page), "exec"), {})
    said = re.findall(r"print\(.*\)  # (.*)", block)
    assert said and capsys.readouterr().out.splitlines() == said


class ScriptedCoins:
    """Coins that fall as a column of the trace says, the first one at the highest bit of a word."""

    def __init__(self) -> None:
        self.coins = ""

    def word(self) -> int:
        return int(self.coins.ljust(64, "0"), 2)


def trace() -> list[dict[str, str]]:
    """The rows of the table, by column."""
    text = (ROOT / "docs" / "policies" / "kl-ucb-br.md").read_text(encoding="utf-8")
    head, _, *rows = re.findall(r"^\|(.*)\|$", text[text.index("| t | h |") :].partition("\n\n")[0], re.MULTILINE)
    columns = [name.strip(" `") for name in head.split("|")]
    return [dict(zip(columns, (cell.strip() for cell in row.split("|")), strict=True)) for row in rows]


def test_the_trace_of_kl_ucb_br_is_what_it_does() -> None:
    coins = ScriptedCoins()
    policy = KlUcbBr(5, 3, coins, lambda s, n: s > 2 * sqrt(n * log(2)))  # type: ignore[arg-type]
    rows = trace()
    assert len(rows) == 30
    for number, row in enumerate(rows, 1):
        coins.coins = row["coins"]
        leader, times = list(policy.leader), policy.counts.get(tuple(policy.leader), 0)
        page = policy.show()
        assert page.challenger is not None and page.hidden is not None
        assert (row["t"], row["h"], row["times"]) == (str(number), str(number % 2), str(times))
        assert (row["leader"], row["shown"]) == (named(leader), named(page.shown))
        assert (row["x"], row["hidden"], len(row["coins"])) == (
            ITEMS[page.challenger], ITEMS[page.hidden], len(page.compared),
        )  # fmt: skip
        before = decided(policy)
        policy.feedback([int(ITEMS[item] in row["clicked"]) for item in page.shown])
        changes = [*sorted(decided(policy) - before), *(f"{pair} no more" for pair in sorted(before - decided(policy)))]
        assert row["decided after it"] == ", ".join(changes)
    assert named(policy.leader) == "bea"
    assert (policy.s[3][2], policy.n[3][2], policy.s[1][0], policy.n[1][0]) == (4, 4, 3, 7)


def named(items: list[int]) -> str:
    return "".join(ITEMS[item] for item in items)


def decided(policy: KlUcbBr) -> set[str]:
    pairs = ((i, j) for i in range(5) for j in range(5))
    return {f"{ITEMS[i]} over {ITEMS[j]}" for i, j in pairs if policy.beats(i, j)}
