"""The examples of the README and of the start page run: in this process, and one against a real service."""

from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_docs import ROOT, code_blocks
from tests.running_service import serving

LIBRARY, EXPERIMENT, SERVICE = code_blocks(ROOT / "README.md")
START = ROOT / "docs" / "index.md"


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(block, "README.md", "exec"), names)
    return names


def test_the_library_learns_what_its_comment_says() -> None:
    assert f"print(ranker.explain().working)  # {run(LIBRARY)['ranker'].explain().working}" in LIBRARY


def test_the_start_page_ends_in_the_same_finding() -> None:
    (first,) = code_blocks(START)
    found = run(first)["ranker"].explain().working
    assert f"print(ranker.explain().working)\n# {found}\n" in first
    assert found == run(LIBRARY)["ranker"].explain().working


def test_the_start_page_has_the_limits_of_the_readme() -> None:
    def limits(page: Path) -> str:
        text = page.read_text(encoding="utf-8").partition("## Three limits\n")[2]
        return " ".join(text.partition("- Proof needs traffic")[0].replace("(docs/", "(").split())

    assert limits(START) == limits(ROOT / "README.md") != ""


def test_the_experiment_finds_what_its_comment_says(capsys: pytest.CaptureFixture[str]) -> None:
    run(EXPERIMENT)
    comment = EXPERIMENT.strip().rpartition("# ... ")[2]
    assert comment in capsys.readouterr().out


def test_the_service_takes_the_click(tmp_path: Path) -> None:
    with serving("--store", tmp_path / "rankings", "--set", "max_lag_seconds=60") as service:
        patient = SERVICE.replace('"http://127.0.0.1:8080"', f'"{service.address}", time_limit=30')
        assert patient != SERVICE
        names = run(patient)
    assert not names["page"].fallback and len(names["page"].items) == 3
    assert names["service"].delivery.accepted == 1
