"""The page of the Python API: what it names says of every parameter, result and error what it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import griffe
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
NAMED = re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE)
SOURCES = [ROOT / "src", ROOT / "clients" / "python" / "src"]
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
HANDLER = next(each["mkdocstrings"] for each in SITE["plugins"] if "mkdocstrings" in each)["handlers"]["python"]
EXTENSIONS = griffe.load_extensions(*(str(ROOT / each) for each in HANDLER["options"]["extensions"]))
PACKAGES = griffe.GriffeLoader(search_paths=SOURCES, allow_inspection=False, extensions=EXTENSIONS)
for package in ("saferank", "saferank_client"):
    PACKAGES.load(package)
IN_A_SENTENCE = ("saferank_client.clients.AsyncClient.", "saferank.policies.registry.PolicyKind.")
"""The first name the method of ``Client`` that has the words; the others are for the rest of the package."""


def functions() -> Iterator[griffe.Function]:
    """The functions of the page, and the public methods of its classes."""
    for name in NAMED:
        found = PACKAGES.modules_collection[name]
        members = found.all_members.values() if found.is_class else [found]
        for each in members:
            if each.is_function and not each.name.startswith("_") and not each.path.startswith(IN_A_SENTENCE):
                yield each


def sections(found: griffe.Object) -> dict[str, list[str]]:
    """The names in each section of a docstring; an empty list for those without names."""
    assert found.docstring is not None, f"{found.path} has no docstring"
    parsed = found.docstring.parse("google", warnings=False)
    return {
        part.kind.value: [getattr(each, "name", "") for each in part.value] for part in parsed if part.kind != "text"
    }


def test_every_parameter_and_result_is_described() -> None:
    for function in functions():
        own = [each.name for each in function.parameters if each.name not in ("self", "cls")]
        said = sections(function)
        told = [f"{'**' if name in ('fields', 'parts', 'asked') else ''}{name}" for name in own]
        assert said.get("parameters", []) == told or said.get("parameters", []) == own, function.path
        takes = bool(own)
        gives = str(function.returns) not in ("None", "dict[str, Any]")
        assert not (takes and gives) or "returns" in said, function.path


def test_classes_that_are_made_by_hand_describe_their_arguments() -> None:
    for name in ("saferank.live.ranker.Ranker", "saferank_client.clients.Client"):
        found = PACKAGES.modules_collection[name]
        start = found.all_members["__init__"]
        assert sections(found)["parameters"] == [each.name for each in start.parameters if each.name != "self"]
        assert "raises" in sections(found)


def test_fields_are_described_by_their_comments() -> None:
    page = PACKAGES.modules_collection["saferank.live.page.Page"]
    hidden = page.members["hidden"].docstring
    assert hidden is not None
    assert hidden.value == "the item at the hidden place K+1 after the coins: compared, not shown"
