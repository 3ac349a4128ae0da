"""The wheel: built once, complete, accepted by twine, usable without the source. ``make package`` installs it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import package_install
import pytest
import yaml  # type: ignore[import-untyped]

from saferank import __version__
from saferank.service.settings import Settings

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
USE = """
from saferank.reporting.page import render
from saferank.service.http.app import dashboard_files
import saferank, saferank.store.embedded.store
assert "/index.html" in dashboard_files()
print(saferank.__file__)
"""


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing of an earlier build is in it."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "dist"), str(folder))
    return next((folder / "dist").glob("*.whl"))


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_it_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    files = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "saferank").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == files


def test_its_metadata_are_ours(wheel: Path) -> None:
    found = metadata(wheel)
    assert (found["Name"], found["Version"], found["License-Expression"]) == ("saferank", __version__, "Apache-2.0")
    assert set(found.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert "passed" in run(sys.executable, "-m", "twine", "check", "--strict", str(wheel)).lower()


def test_it_works_without_the_source(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    assert run(sys.executable, "-c", USE, PYTHONPATH=str(tmp_path)).startswith(str(tmp_path))
    assert __version__ in run(sys.executable, "-m", "saferank.cli", "--version", PYTHONPATH=str(tmp_path))


def test_the_client_is_a_distribution_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "client"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT / "clients" / "python", folder, ignore=ignored)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(folder))
    (built,) = (tmp_path / "dist").iterdir()
    assert metadata(built).get_all("Requires-Dist") == ["httpx>=0.27"]
    with zipfile.ZipFile(built) as archive:
        assert {name.partition("/")[0] for name in archive.namelist()} == {
            "saferank_client", f"saferank_client-{__version__}.dist-info",
        }  # fmt: skip


def test_every_extra_is_tried_by_make_package() -> None:
    assert package_install.known_extras() == ["", *sorted(PROJECT["optional-dependencies"])]


def test_make_installs_every_extra() -> None:
    named = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert named is not None and set(named[1].split(",")) == set(PROJECT["optional-dependencies"])


def test_extras_are_in_the_documentation_and_in_the_image() -> None:
    page = (ROOT / "docs" / "start" / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(PROJECT["optional-dependencies"])
    image = re.search(r'"\.\[([\w,]+)\]"', (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert image is not None and set(image.group(1).split(",")) <= set(PROJECT["optional-dependencies"])


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest.groups() == (citation["version"], citation["date-released"])
    client = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert citation["version"] == __version__ == client["version"]
    bibtex = (ROOT / "docs" / "reference" / "cite.md").read_text(encoding="utf-8")
    assert f"{{{__version__}}}" in bibtex and f"{{{citation['date-released']}}}" in bibtex
    assert f"{{{citation['references'][0]['doi']}}}" in bibtex


def test_a_skipped_test_fails_where_nothing_may_be_skipped(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", "--rootdir", "."]
    for reason, status in (("needs a browser", 1), ("../shared/data is not here", 0)):
        test = tmp_path / "test_skipped.py"
        test.write_text(f"import pytest\n\ndef test_it():\n    pytest.skip({reason!r})\n", encoding="utf-8")
        environment = {**os.environ, "SAFERANK_NO_SKIPS": "1"}
        done = subprocess.run([*command, str(test)], cwd=ROOT, env=environment, capture_output=True, check=False)
        assert done.returncode == status, done.stdout


def test_the_containers_are_as_the_documentation_says() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"saferank", "database"}
    assert services["saferank"]["read_only"] and services["saferank"]["user"] == "10001"
    assert all(port.startswith("127.0.0.1:") for port in services["saferank"]["ports"])
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "\nUSER 10001\n" in image and "\nHEALTHCHECK " in image
    named = {*services["saferank"]["environment"], *re.findall(r"SAFERANK_SERVE_\w+", image)}
    assert {name.removeprefix("SAFERANK_SERVE_").lower() for name in named} <= set(Settings.__struct_fields__)
