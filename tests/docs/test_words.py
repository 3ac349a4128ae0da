"""Words that the glossary replaces are in no document, no message and no docstring."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
HEADING = "## Words that are not used"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCES = sorted(
    path
    for ending in ("py", "html", "js")
    for folder in ("src", "docs/notebooks", "benchmarks")
    for path in (ROOT / folder).rglob(f"*.{ending}")
)


def forbidden() -> list[str]:
    """The first column of the last table of the glossary."""
    table = GLOSSARY.read_text(encoding="utf-8").split(HEADING)[1]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    return [word.strip() for row in rows if row != "not" for word in row.split(",")]


def found(text: str) -> list[str]:
    """The words in a text, however its lines are broken."""
    flat = " ".join(re.sub(r'["\'#\s]+', " ", text).split()).lower()
    return [word for word in forbidden() if re.search(rf"\b{re.escape(word)}\b", flat)]


def test_the_table_is_read() -> None:
    assert {"for ever", "goes on where", "user model"} <= set(forbidden())
    assert found("It holds for\n    # ever.") == ["for ever"]
    assert found("for every item") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_documents(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert found(text.split(HEADING)[0] if page == GLOSSARY else text) == []


def test_sources() -> None:
    wrong = {path.relative_to(ROOT).as_posix(): found(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {path: words for path, words in wrong.items() if words} == {}
