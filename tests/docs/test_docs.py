"""The documentation is complete and true: what exists is documented, what is generated is current, examples run."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from saferank.click_models import CLICK_MODELS
from saferank.policies import POLICIES

ROOT = Path(__file__).parents[2]
BUILT_IN_POLICIES = [name for name, kind in POLICIES.items() if kind.policy.__module__.startswith("saferank.")]
ALL_PAGES = ROOT / "docs" / "start" / "all-pages.md"
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def code_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("policy", BUILT_IN_POLICIES)
def test_every_policy_has_a_page_and_is_listed(policy: str) -> None:
    assert (ROOT / "docs" / "policies" / f"{policy}.md").read_text(encoding="utf-8").startswith(f"# {policy}\n")
    assert f"(../policies/{policy}.md)" in ALL_PAGES.read_text(encoding="utf-8")


def test_every_page_is_on_the_page_of_all_pages() -> None:
    listed = {(ALL_PAGES.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)", ALL_PAGES.read_text("utf-8"))}
    starts = {ALL_PAGES, ROOT / "docs" / "index.md"}
    assert sorted(set((ROOT / "docs").rglob("*.md")) - listed - starts) == []


@pytest.mark.parametrize("model", CLICK_MODELS)
def test_every_click_model_is_documented(model: str) -> None:
    assert f"| `{model}` |" in (ROOT / "docs" / "algorithms" / "click-models.md").read_text(encoding="utf-8")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_command_line_reference_is_current() -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert page == script("generate").reference(), "run make docs"


def test_the_tables_of_figures_are_current() -> None:
    tables = script("figure_tables")
    assert len(tables.pages()) >= 3
    for page in tables.pages():
        text = page.read_text(encoding="utf-8")
        assert text == tables.with_tables(text), f"{page.name}: run make docs"


@pytest.mark.parametrize(
    "page",
    [
        ROOT / "docs" / "engineers" / "live-ranker.md",
        ROOT / "docs" / "researchers" / "library.md",
    ],  # README: test_readme.py
    ids=lambda page: page.name,
)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = code_blocks(page)
    assert blocks
    for block in blocks:
        exec(compile(block, str(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_functions_and_files_named_in_tables_exist(page: Path) -> None:
    """A page that names a function or file in backticks must not outlive it; the changelog says what was removed."""
    folders = ROOT / "src", ROOT / "clients", ROOT / "benchmarks"
    source = "\n".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    named = re.findall(r"`(_?[a-z]+(?:_[a-z]+)+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if name not in source and name != "saferank_client"] == []


def test_the_lines_of_the_papers_listing_follow_one_another() -> None:
    """The listing of KL-UCB-BR has 26 numbered lines; 1, 2, 4 and 13 are input, zeros, the loop and the display."""
    page = (ROOT / "docs" / "policies" / "kl-ucb-br.md").read_text(encoding="utf-8")
    spans = [(int(a), int(b or a)) for a, b in re.findall(r"^\| lines? (\d+)(?:-(\d+))?,", page, re.MULTILINE)]
    named = {line for first, last in spans for line in range(first, last + 1)}
    assert spans == sorted(spans)
    assert named == set(range(1, 27)) - {1, 2, 4, 13}
