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


def test_only_the_kernel_files_import_numba() -> None:
    assert sorted(name for name, source in SOURCES.items() if "numba" in imported(source)) == [
        "_inner_code.py",
        "_kernel.py",
        "memory.py",
    ]


def test_nothing_pickles() -> None:
    assert [name for name, source in SOURCES.items() if imported(source) & {"pickle", "dill", "cloudpickle"}] == []


def test_references_import_nothing_of_ours_and_only_the_standard_library() -> None:
    folder = Path(__file__).parent / "reference"
    foreign = {"saferank", "numpy", "numba", "scipy"}
    assert [path.name for path in folder.glob("*.py") if imported(path.read_text(encoding="utf-8")) & foreign] == []


def test_commands_only_parse_call_and_print() -> None:
    """What computes is imported when a command runs, and commands do not import one another."""
    for name, source in SOURCES.items():
        if name.startswith("cli/commands/"):
            assert "saferank.cli.commands" not in source, name
            assert not imported(source) & {"numpy", "numba", "matplotlib"}, name


def test_a_class_has_a_name_of_its_own() -> None:
    homes: dict[str, list[str]] = {}
    for name, source in SOURCES.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
