"""Every file that a document names is in this repository, so that a reader can look at it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "tests", "benchmarks", "deploy", ".github", ".ci")
FOUND = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + list(ROOT.iterdir())
FILES = [path.relative_to(ROOT).as_posix() for path in FOUND if path.is_file()]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMED = re.compile(r"(?<![\w./$-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|sql|toml|yml|yaml|cff))(?![\w-])")
READERS_OWN = {"my_policy.py", "one_swap.py", "saferank.toml", "shop.py", "tired_users.py"}
"""Files that a reader writes while following a page."""


def is_here(name: str) -> bool:
    clean = name.removeprefix("../").removeprefix("./")
    return any(path == clean or path.endswith(f"/{clean}") for path in FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_by_a_document_exist(page: Path) -> None:
    named = {match for match in NAMED.findall(page.read_text(encoding="utf-8")) if match not in READERS_OWN}
    assert sorted(name for name in named if not is_here(name)) == []


def test_documents_name_files_at_all() -> None:
    """The pattern finds what it should: a check that finds nothing could not fail."""
    assert NAMED.findall("see `docs/safety.md`, (policies/safe-draw.md#figures) and shared/bubble.py.") == [
        "docs/safety.md", "policies/safe-draw.md", "shared/bubble.py",
    ]  # fmt: skip
    assert not is_here("ALGORITHMS.md") and is_here("benchmarks/fitting.py")
