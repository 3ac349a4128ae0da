"""Plug-ins travel by their source: in the right order, once, and not at all where that would give other results."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from saferank.click_models import CLICK_MODELS, PBM
from saferank.errors import ArgumentError
from saferank.experiments.engines import engine_of
from saferank.instances import Instance, embedded_instances
from saferank.plugins import load_plugins
from saferank.policies import POLICIES
from saferank.simulation.cluster.shipping import (
    NotInAFileError,
    RefusedPlugin,
    Source,
    load_sources,
    portable,
    sources_of,
    unpacked,
)

HELPER = "from saferank.verbs import kernel\n\n\n@kernel\ndef half(x):\n    return x / SHARE\n"
MODEL = """
from typing import NamedTuple

from saferank.click_models import register
from saferank.click_models.shapes import PerItem
from saferank.randomness import uniform
from saferank.verbs import click, expected_clicks, implements
from travelling_helper import half


class Halved(NamedTuple):
    attraction: PerItem


@implements(click, Halved)
def _click(model, shown, rng, clicks):
    for position in range(len(clicks)):
        clicks[position] = uniform(rng) < half(model.attraction[shown[position]])


@implements(expected_clicks, Halved)
def _expected_clicks(model, shown):
    total = 0.0
    for position in range(len(shown)):
        total += half(model.attraction[shown[position]])
    return total


register("halved", Halved)
"""


@pytest.fixture
def halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A click model from a file that imports another one from beside it."""
    (tmp_path / "travelling_helper.py").write_text(HELPER.replace("SHARE", "2.0"))
    (tmp_path / "travelling_model.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    load_plugins([str(tmp_path / "travelling_model.py")])
    yield CLICK_MODELS["halved"]
    forget()


def forget() -> None:
    CLICK_MODELS.pop("halved", None)
    for name in ("travelling_helper", "travelling_model"):
        sys.modules.pop(name, None)


def test_a_source_comes_after_those_that_it_imports(halved: type) -> None:
    helper, model = sources_of([halved, PBM, POLICIES["original"].start])
    assert (helper.module, model.module) == ("travelling_helper", "travelling_model")
    assert model.text == MODEL
    assert [source.module for source in sources_of([partial(halved)])] == ["travelling_helper", "travelling_model"]
    assert len(model.digest) == 16
    assert model.digest != helper.digest


def test_an_instance_with_its_click_model_arrives_where_nobody_knew_it(halved: Any) -> None:
    known = embedded_instances(2, models=("cm",))[0]
    sources = sources_of([halved])
    sent = portable(Instance("q", halved(known.model.attraction), "halved", known.items, examination=(1.0, 0.5)))
    forget()
    load_sources(sources)
    arrived = unpacked(sent)
    assert (arrived.id, arrived.items, arrived.examination) == ("q", known.items, (1.0, 0.5))
    assert arrived.model.attraction.tolist() == known.model.attraction.tolist()
    assert type(arrived.model) is CLICK_MODELS["halved"] is not halved
    load_sources(sources)
    assert type(arrived.model) is CLICK_MODELS["halved"], "it is loaded once"


def test_a_newer_version_takes_the_place_of_one_that_was_sent(halved: type) -> None:
    _, model = sources_of([halved])
    forget()
    helper = Source("travelling_helper", "0" * 16, HELPER.replace("SHARE", "4.0"))
    load_sources([helper, model])
    assert sys.modules["travelling_helper"].half(1.0) == 0.25
    assert CLICK_MODELS["halved"] is not halved


def test_a_module_that_was_not_sent_is_not_replaced(halved: type) -> None:
    with pytest.raises(RefusedPlugin, match="a worker has another json than the experiment; install the same there"):
        load_sources([Source("json", "0" * 16, "")])
    with pytest.raises(RefusedPlugin, match=r"a worker has no module no\.such; install it there, or give the plug-in"):
        load_sources([Source("no.such", "0" * 16, None)])


def test_a_class_of_a_notebook_is_refused_with_what_to_do() -> None:
    class Cell:
        __module__ = "__main__"

    with pytest.raises(NotInAFileError, match="cannot play Cell, which is defined in a notebook or script: write"):
        sources_of([Cell])
    with pytest.raises(ArgumentError, match="cluster: cannot play Cell"), engine_of(1, "tcp://127.0.0.1:1", [Cell]):
        pass
