"""What import-linter (``make lint``) cannot say about the shape of the package."""

import ast
from pathlib import Path

import saferank

PACKAGE = Path(saferank.__file__).parent
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def imported(source: str) -> set[str]:
    """The top-level packages that a module imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_only_kernel_imports_numba() -> None:
    assert [name for name, source in SOURCES.items() if "numba" in imported(source)] == ["_kernel.py"]


def test_nothing_pickles() -> None:
    assert [name for name, source in SOURCES.items() if imported(source) & {"pickle", "dill", "cloudpickle"}] == []


def test_references_import_nothing_of_ours_and_only_the_standard_library() -> None:
    folder = Path(__file__).parent / "reference"
    foreign = {"saferank", "numpy", "numba", "scipy"}
    assert [path.name for path in folder.glob("*.py") if imported(path.read_text(encoding="utf-8")) & foreign] == []


def test_files_stay_small() -> None:
    assert {name: n for name, source in SOURCES.items() if (n := source.count("\n")) > 400} == {}
