"""Fixtures of all tests, and how skips are handled."""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.tiers import TEST, tier_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NO_SKIPS = "SAFERANK_NO_SKIPS" in os.environ
"""Set in CI, which has everything: a test that would be skipped there fails."""
NOT_PUBLIC = "../shared/"
"""In the reason of a skip: it needs data that may not be published, which CI has not."""

_QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m does not ask for
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test with its tier (tests/tiers.py), unless it carries one already."""
    for item in items:
        if item.get_closest_marker("check") or item.get_closest_marker("soak"):
            continue
        path = os.path.relpath(item.path, config.rootpath)  # a test of this file's own hooks lies elsewhere
        tier = tier_of(Path(path).as_posix(), _fixtures_of(item))
        if tier != TEST:
            item.add_marker(tier)


def _fixtures_of(item: pytest.Item) -> frozenset[str]:
    """The fixtures that a test asks for, and those that its parameters stand for."""
    asked = set(getattr(item, "fixturenames", ()))
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    return frozenset(asked | ({"postgres_process"} if "postgres" in map(str, values) else set()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """In CI nothing is skipped silently."""
    report = yield
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail") and NOT_PUBLIC not in str(report.longrepr):
        report.outcome = "failed"
    return report


@pytest.fixture(autouse=True)
def limits_as_they_are() -> Iterator[None]:
    """Whatever a test makes small is as before for the next one."""
    from saferank.service import limits

    kept = {name: value for name, value in vars(limits).items() if name.isupper()}
    yield
    vars(limits).update(kept)


@pytest.fixture
def blank_figure_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn for the page only; the files, whose drawing takes most of the time, are there but empty."""

    def touched(figure: object, folder: Path, stem: str) -> list[Path]:
        paths = [folder / f"{stem}.{form}" for form in ("png", "svg", "pdf")]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr("saferank.reporting.sections.write_formats", touched)


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    """A real browser without a screen; ``chromium.new_page(viewport=, color_scheme=)`` opens a page.

    Not for the whole session: while its driver lives, an event loop runs in this thread, and asyncio.run() fails.
    """
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("needs Chromium (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=_QUIET)
        yield browser
        browser.close()
