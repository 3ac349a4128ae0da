"""Pictures of the dashboard with made-up answers: ``python -m tests.service.dashboard.pictures FOLDER [NAME ...]``.

No service runs: the files of the dashboard and the answers come from this process. With the address of a running
service instead of names, like ``http://127.0.0.1:8080``, the pictures are of that one, wide and narrow, light and dark.
``docs/images/dashboard.png`` is ``FOLDER/dashboard.png`` of ``saferank serve --demo``.
"""

import itertools
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from saferank.service.http.app import dashboard_files
from tests.service.dashboard import answers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

ADDRESS = "http://saferank.invalid"
Answer = Callable[[], dict[str, Any]]

SCENES: dict[str, tuple[str, Answer, Answer]] = {
    "overview-4": ("/", lambda: answers.overview(4), lambda: answers.context_list(4)),
    "overview-500": ("/", lambda: answers.overview(500), lambda: answers.context_list(500)),
    "alarm": ("/", lambda: answers.with_alarm(500), lambda: answers.context_list(500)),
    "guardrail": ("/", lambda: answers.stopped(500), lambda: answers.context_list(500)),
    "no-holdout": ("/", lambda: answers.without_holdout(4), lambda: answers.context_list(4)),
    "empty": ("/", answers.empty, lambda: answers.context_list(0)),
    "context": ("/#context=lamps", lambda: answers.overview(4), lambda: answers.context_list(4)),
}
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def answering(page: "Page", overview: Answer, listed: Answer) -> None:
    """Answer everything that the page asks for."""
    found = dashboard_files()

    def answer(route: "Route") -> None:
        path = route.request.url.removeprefix(ADDRESS).partition("#")[0]
        if path in found:
            route.fulfill(body=found[path], content_type=TYPES[Path(path).suffix or ".html"])
        elif path == "/v1/overview":
            route.fulfill(json=overview())
        elif path == "/v1/contexts":
            route.fulfill(json=listed())
        elif path.endswith("/effect"):
            route.fulfill(json=msgspec.to_builtins(answers.BETTER))
        else:
            route.fulfill(json=answers.context("lamps"))

    page.route(f"{ADDRESS}/**", answer)


def take(browser: "Browser", folder: Path, scene: str, width: int, scheme: Any) -> Path:
    """One picture of a whole page, and one of its first screen."""
    where, overview, listed = SCENES[scene]
    height = 844 if width < 500 else 900
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    answering(page, overview, listed)
    page.goto(f"{ADDRESS}{where}")
    page.locator("#status.ok").wait_for()
    page.wait_for_timeout(300)
    path = folder / f"{scene}-{width}-{scheme}.png"
    page.screenshot(path=folder / f"{path.stem}-first.png")
    page.screenshot(
        path=path,
        full_page=True,
        clip={"x": 0, "y": 0, "width": width, "height": 2600}
        if "500" in scene or scene in ("alarm", "guardrail")
        else None,
    )
    page.close()
    return path


def take_running(browser: "Browser", folder: Path, address: str) -> None:
    """The first screens of a running service in few colours, as the docs have them."""
    from PIL import Image

    schemes: list[Literal["light", "dark"]] = ["light", "dark"]
    for width, scheme in itertools.product((1280, 390), schemes):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.goto(address)
        page.locator("#status.ok").wait_for()
        page.wait_for_timeout(300)
        path = folder / ("dashboard.png" if (width, scheme) == (1280, "light") else f"dashboard-{width}-{scheme}.png")
        page.screenshot(path=path, full_page=True)
        page.close()
        with Image.open(path) as whole:
            few = whole.convert("RGB").quantize(256)
        few.save(path, optimize=True)


def main() -> None:
    """Take all pictures, or those whose names begin as asked."""
    from playwright.sync_api import sync_playwright

    folder, wanted = Path(sys.argv[1]), tuple(sys.argv[2:])
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        executable = shutil.which("chromium") or shutil.which("google-chrome")
        browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        if wanted and wanted[0].startswith("http"):
            take_running(browser, folder, wanted[0])
        for scene in SCENES:
            for width in (1280, 390):
                for scheme in ("light", "dark"):
                    if not wanted or f"{scene}-{width}-{scheme}".startswith(wanted):
                        take(browser, folder, scene, width, scheme)
        browser.close()


if __name__ == "__main__":
    main()
