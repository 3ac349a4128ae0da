"""Every file that a document names is in this repository, so that a reader can look at it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "src", "clients", "tests", "benchmarks", "deploy", ".github", ".ci")
FOUND = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + list(ROOT.iterdir())
SUBFOLDERS = [path.relative_to(ROOT).as_posix() for path in FOUND if path.is_dir()]
FILES = [path.relative_to(ROOT).as_posix() for path in FOUND if path.is_file()]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMED = re.compile(r"(?<![\w./$-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|sql|toml|yml|yaml|cff))(?![\w-])")
NAMED_FOLDER = re.compile(r"`((?:[\w.-]+/)+)`")
NAMED_JSON = re.compile(r"`((?:[\w.-]+/)*[\w-]+\.json)`")
READERS_OWN = {"mine.py", "my_policy.py", "one_swap.py", "saferank.toml", "shop.py", "tired_users.py"}
"""Files that a reader writes while following a page."""
MADE_FOLDERS = {"build/site/", "dist/", "pieces/", "figures/"}
"""Folders that a command makes."""
MADE_JSON = {
    "experiment.json", "forecast.json", "instances.json", "mine-errors.json", "mine.json", "model-study.json",
    "results.json", "sensitivity.json", "study.json", "tired.json",
}  # fmt: skip
"""Files that a command or an example writes."""
ELSEWHERE = {"yandex60.json"}
"""Data that a page says are not in this repository."""


def is_here(name: str) -> bool:
    clean = name.removeprefix("../").removeprefix("./")
    return any(path == clean or path.endswith(f"/{clean}") for path in FILES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_by_a_document_exist(page: Path) -> None:
    named = {match for match in NAMED.findall(page.read_text(encoding="utf-8")) if match not in READERS_OWN}
    assert sorted(name for name in named if not is_here(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_folders_and_json_files_named_by_a_document_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = {name for name in NAMED_FOLDER.findall(text) if name not in MADE_FOLDERS}
    assert sorted(name for name in folders if not any(f"/{path}/".endswith(f"/{name}") for path in SUBFOLDERS)) == []
    data = {name for name in NAMED_JSON.findall(text) if Path(name).name not in MADE_JSON | ELSEWHERE}
    assert sorted(name for name in data if not is_here(name)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_document_need_no_file_from_elsewhere(page: Path) -> None:
    """An example that a reader cannot run; tables of measured figures may name what they were measured on."""
    commands = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("    saferank ")]
    assert [line for line in commands if any(name in line for name in ELSEWHERE)] == []


def test_every_folder_of_the_package_stands_in_the_architecture() -> None:
    text = (ROOT / "docs" / "reference" / "architecture.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "saferank"
    folders = [path.name for path in package.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    assert sorted(name for name in folders if f"| `{name}/` |" not in text) == []


def test_documents_name_files_at_all() -> None:
    """The pattern finds what it should: a check that finds nothing could not fail."""
    assert NAMED.findall("see `docs/algorithms/safety.md`, (policies/safe-draw.md#figures) and shared/bubble.py.") == [
        "docs/algorithms/safety.md", "policies/safe-draw.md", "shared/bubble.py",
    ]  # fmt: skip
    assert NAMED_FOLDER.findall("`service/state/` and `docs/`") == ["service/state/", "docs/"]
    assert NAMED_JSON.findall("`tests/data/pages.json`, `results.json`") == ["tests/data/pages.json", "results.json"]
    assert not is_here("ALGORITHMS.md") and is_here("benchmarks/logs/fitting.py")
