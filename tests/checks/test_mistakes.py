"""Typical mistakes of plug-in authors: each is caught before the first result, by a sentence with file and fix.

A mistake is a sound plug-in with an edit or two. Where the edit has the comment ``# FAULT``, the sentence names that
line.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from saferank import ArgumentError, Ranker, RankerError, simulate
from saferank.click_models import CLICK_MODELS
from saferank.instances import embedded_instances
from saferank.plugins import load_plugins
from saferank.policies import POLICIES
from tests.cli.command_line import Outcome, call

COMPILES = os.environ.get("NUMBA_DISABLE_JIT") != "1"
SMALL = ("--rounds", 10, "--repetitions", 1, "--positions", 2, "--jobs", 1)

POLICY = """
from typing import NamedTuple

import numpy as np

from saferank.policies import register
from saferank.randomness import below
from saferank.verbs import Floats, Ints, Items, choose, implements, learn


class Mine(NamedTuple):
    lead: int


class MineEvidence(NamedTuple):
    leader: Items
    clicks: Ints
    share: Floats


@implements(choose, Mine)
def _choose(policy, evidence, plan, rng, impression):
    impression.places[0] = len(evidence.leader)
    for place in range(len(evidence.leader)):
        impression.ranking[place] = evidence.leader[place]
        impression.start[place], impression.end[place] = place, place + 1
    other = below(rng, len(evidence.leader))
    impression.ranking[0], impression.ranking[other] = impression.ranking[other], impression.ranking[0]


@implements(learn, Mine)
def _learn(policy, evidence, impression, clicks):
    for place in range(len(clicks)):
        evidence.clicks[impression.ranking[place]] += clicks[place]
    evidence.share[0] = evidence.clicks[0] / (1.0 + evidence.clicks.sum())


def _start(setup):
    leader = np.arange(setup.n_positions, dtype=np.uint32)
    return Mine(lead=3), MineEvidence(leader, np.zeros(setup.n_items, np.int64), np.zeros(1))


register("mine", Mine, start=_start, leader=lambda evidence, plan: evidence.leader)
"""

MODEL = """
from typing import NamedTuple

import numpy as np

from saferank.click_models import register
from saferank.click_models.shapes import PerItem, Probability
from saferank.randomness import uniform
from saferank.verbs import click, expected_clicks, implements


class Mine(NamedTuple):
    attraction: PerItem
    patience: Probability


@implements(click, Mine)
def _click(model, shown, rng, clicks):
    for position in range(len(clicks)):
        clicks[position] = uniform(rng) < model.attraction[shown[position]] * model.patience


@implements(expected_clicks, Mine)
def _expected_clicks(model, shown):
    total = 0.0
    for position in range(len(shown)):
        total += model.attraction[shown[position]] * model.patience
    return total


register("mine", Mine)
"""

SWAP = "    impression.ranking[0], impression.ranking[other] = impression.ranking[other], impression.ranking[0]\n"
DRAW = "    other = below(rng, len(evidence.leader))\n"
REGISTER = 'register("mine", Mine, start=_start, leader=lambda evidence, plan: evidence.leader'
STATE = "leader, np.zeros(setup.n_items, np.int64), np.zeros(1))"


class Mistake(NamedTuple):
    """Edits of a sound plug-in, and parts of the sentence that they are answered with."""

    edits: dict[str, str]
    parts: tuple[str, ...]


POLICY_MISTAKES = {
    "shows_an_item_twice": Mistake(
        {SWAP: "    impression.ranking[0] = evidence.leader[other]\n"},
        ("shows an item twice", "A page needs different items"),
    ),
    "writes_behind_the_page": Mistake(
        {SWAP: "    for hidden in range(len(evidence.leader), len(evidence.leader) + 2):\n"
               "        impression.ranking[hidden] = evidence.clicks.argmin()  # FAULT\n"},
        ("IndexError", "A page has room for 4 places", "registered with compares_all=True"),
    ),
    "shows_too_few_items": Mistake(
        {"impression.places[0] = len(evidence.leader)\n": "impression.places[0] = len(evidence.leader) - 1\n"},
        ("uses 2 places for 3 positions", "at least the number of positions"),
    ),
    "forgets_to_learn": Mistake(
        {"@implements(learn, Mine)\n": ""},
        ("learn() is not implemented for Mine", "@implements(learn, Mine)"),
    ),
    "numbers_its_pages": Mistake(
        {DRAW: DRAW + "    impression.round[0] = 7\n"},
        ("numbers page 1 as 7", "the caller gives pages their numbers"),
    ),
    "counts_in_floats": Mistake(
        {STATE: "leader, np.zeros(setup.n_items), np.zeros(1))"},
        ("evidence.clicks of mine is declared as an array of int64", "the dtype np.int64"),
    ),
    "keeps_a_list": Mistake(
        {STATE: "leader, [0] * setup.n_items, np.zeros(1))"},
        ("evidence.clicks of mine cannot be saved", "fields are arrays of numbers"),
    ),
    "draws_from_numpy": Mistake(
        {DRAW: "    other = np.random.randint(len(evidence.leader))\n"},
        ("choose() of mine draws another page for the same evidence", "Draw from rng alone"),
    ),
    "draws_from_random": Mistake(
        {DRAW: "    other = random.randrange(len(evidence.leader))\n", "from typing": "import random\nfrom typing"},
        ("choose() of mine draws another page for the same evidence", "Draw from rng alone"),
    ),
    "looks_at_a_fast_clock": Mistake(
        {DRAW: "    other = time.perf_counter_ns() // 64 % len(evidence.leader)\n",
         "from typing": "import time\nfrom typing"},
        ("choose() of mine draws another page for the same evidence", "Draw from rng alone"),
    ),
    "starts_by_chance": Mistake(
        {"    leader = np.arange(setup.n_positions, dtype=np.uint32)\n":
            "    leader = np.random.permutation(setup.n_positions).astype(np.uint32)\n"},
        ("plays other pages when it is started again", "Let start() make new arrays each time"),
    ),
    "chooses_by_a_global_array": Mistake(
        {DRAW: "    PAGES[0] += 1\n    other = PAGES[0] % len(evidence.leader)\n",
         "class Mine(": "PAGES = np.zeros(1, np.int64)\n\n\nclass Mine("},
        ("choose() of mine draws another page", "let no draw read what another one wrote"),
    ),
    "learns_while_choosing": Mistake(
        {SWAP: SWAP + "    evidence.clicks[impression.ranking[0]] -= 1\n"},
        ("choose() of mine changes evidence.clicks", "Only learn() may"),
    ),
    "learns_from_hidden_items": Mistake(
        {"range(len(clicks)):\n        evidence.clicks[impression.ranking[place]] += clicks[place]\n":
            "range(len(clicks) + 1):\n        evidence.clicks[impression.ranking[place]] += clicks[place]  # FAULT\n"},
        ("learn() of mine fails", "the click of a hidden place is 0"),
    ),
    "divides_by_zero": Mistake(
        {"evidence.clicks[0] / (1.0 + evidence.clicks.sum())":
            "np.float64(evidence.clicks[0]) / evidence.clicks.sum()"},
        ("leaves NaN in share", "Test for zero before you divide"),
    ),
    "takes_a_known_name": Mistake(
        {REGISTER + ")": REGISTER.replace('"mine"', '"kl-ucb-br"') + ")  # FAULT"},
        ("the name is taken by a policy of saferank.policies.kl_ucb_br", "choose another one"),
    ),
    "fails_on_short_pages": Mistake(
        {SWAP: "    impression.ranking[0], impression.ranking[1] = evidence.leader[1], evidence.leader[0]  # FAULT\n"},
        ("fails with n_items=6, n_positions=1", "Compiled code would read or write beyond"),
    ),
    "shares_its_state": Mistake(
        {STATE: "leader, CLICKS, np.zeros(1))", "class Mine(": "CLICKS = np.zeros(6, np.int64)\n\n\nclass Mine("},
        ("gives every run the same array as clicks", "Make new arrays each time"),
    ),
    "writes_into_the_page": Mistake(
        {"    evidence.share[0] =": "    impression.ranking[0] = evidence.leader[0]\n    evidence.share[0] ="},
        ("writes into the impression", "Copy what you need"),
    ),
    "leads_with_too_few": Mistake(
        {REGISTER: REGISTER + "[:1]"},
        ("leader() of mine returns [0]", "at least 3 different items"),
    ),
    "promises_too_much": Mistake(
        {"= evidence.leader[place]\n": "= evidence.leader[len(evidence.leader) - 1 - place]\n", SWAP: "",
         REGISTER: REGISTER + ", safe=True"},
        ("is registered with safe=True, but shows [5, 4, 3, 2, 1, 0]", "or register it without safe=True"),
    ),
    "assumes_an_unknown_model": Mistake(
        {REGISTER: REGISTER + ', made_for="nope"'},
        ("made_for='nope', which is no click model", "leave made_for out"),
    ),
    "registers_nothing": Mistake(
        {REGISTER + ")": ""}, ("registers neither a policy nor a click model", "call register(")
    ),
    "misspells_a_part": Mistake(
        {REGISTER + ")": REGISTER + ", certify=True)  # FAULT"},
        ("a policy has no part 'certify'", "known ones: start, leader, plan"),
    ),
}  # fmt: skip
COMPILED_MISTAKES = {
    "calls_a_plain_function": Mistake(
        {DRAW: "    other = _next(rng, evidence.leader)\n",
         "@implements(choose": "def _next(rng, leader):\n    return below(rng, len(leader))\n\n\n@implements(choose"},
        ("choose() of mine does not compile", "_next() is a plain Python function", "decorated with @kernel"),
    ),
    "looks_at_the_clock": Mistake(
        {DRAW: "    other = below(rng, len(evidence.leader)) if time.time() % 86400 < 43200 else 0\n",
         "from typing": "import time\nfrom typing"},
        ("choose() of mine does not compile", "time.time is not known to compiled code"),
    ),
    "makes_an_array": Mistake(
        {DRAW: DRAW + "    order = np.argsort(evidence.clicks)\n    impression.challenger[0] = order[0]\n"},
        ("choose() of mine does not compile", "Kernels make no new arrays"),
    ),
    "writes_a_global_array": Mistake(
        {DRAW: DRAW + "    PAGES[0] += 1\n", "class Mine(": "PAGES = np.zeros(1, np.int64)\n\n\nclass Mine("},
        ("choose() of mine does not compile", "writes a global array", "Give the evidence or the plan an array"),
    ),
    "wraps_around": Mistake(
        {SWAP: "    first = evidence.leader[0]\n    if len(evidence.leader) > 1 and first - 1 > 5:\n"
               "        impression.ranking[0], impression.ranking[1] = evidence.leader[1], first\n"},
        ("does something else compiled than interpreted, on page 1", "convert with int()"),
    ),
}  # fmt: skip
MODEL_MISTAKES = {
    "expects_other_clicks": Mistake(
        {"total += model.attraction[shown[position]] * model.patience": "total += model.attraction[shown[position]]"},
        ("Mine expects 0.7000 clicks", "let expected_clicks() return the mean of the clicks"),
    ),
    "clicks_by_numpy": Mistake(
        {"uniform(rng) <": "np.random.random() <"},
        ("gives other clicks for the same state of the generator", "Draw from rng alone"),
    ),
    "leaves_old_clicks": Mistake(
        {"clicks[position] = uniform(rng) < model.attraction[shown[position]] * model.patience":
            "if uniform(rng) < model.attraction[shown[position]] * model.patience:\n            clicks[position] = 1"},
        ("must write 0 or 1 for every position", "write the positions without a click too"),
    ),
    "has_no_shape": Mistake(
        {"patience: Probability": "patience: float", 'register("mine", Mine)': 'register("mine", Mine)  # FAULT'},
        ("field 'patience' of click model Mine has no shape", "annotate it as PerItem"),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    """Plug-ins are forgotten after each test."""
    policies, models, modules = dict(POLICIES), dict(CLICK_MODELS), set(sys.modules)
    yield
    for known, before in ((POLICIES, policies), (CLICK_MODELS, models)):
        known.clear()
        known.update(before)  # type: ignore[arg-type]
    for name in [name for name in sys.modules.keys() - modules if name.startswith("mistake_")]:
        del sys.modules[name]


def written(folder: Path, name: str, base: str, mistake: Mistake) -> Path:
    """The plug-in with the mistake, in a file; every edit must have something to change."""
    for old, new in mistake.edits.items():
        assert old in base
        base = base.replace(old, new, 1)
    file = folder / f"mistake_{name}.py"
    file.write_text(base)
    return file


def check_refused(outcome: Outcome, file: Path, mistake: Mistake, out: Path) -> None:
    """One line that names the file, the line where it is marked, the mistake and the fix; nothing was played."""
    lines = [line for line in outcome.err.splitlines() if not line.startswith("compiling")]
    assert (outcome.code, outcome.out, len(lines)) == (2, "", 1), outcome
    marked = [number for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# FAULT")]
    assert str(file) in lines[0]
    assert all(part in lines[0] for part in mistake.parts), lines[0]
    assert all(f"{file}:{number}: " in lines[0] or f"(line {number} of {file})" in lines[0] for number in marked)
    assert not (out / "results.json").exists()


def test_the_base_has_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugins = [written(tmp_path, f"none_{n}", base, Mistake({}, ())) for n, base in enumerate((POLICY, MODEL))]
    users = {"id": "q", "model": "mine", "items": ["a", "b", "c"], "attraction": [0.4, 0.3, 0.2], "patience": 0.5}
    (tmp_path / "q.json").write_text(json.dumps({"instances": [users]}))
    options = [part for plugin in plugins for part in ("--plugin", plugin)]
    outcome = call(
        capsys, "simulate", tmp_path / "q.json", *SMALL, *options, "--policies", "mine", "--out", tmp_path / "out"
    )
    assert outcome.code == 0, outcome


@pytest.mark.parametrize("name", POLICY_MISTAKES)
def test_a_mistake_in_a_policy_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _check_policy(name, POLICY_MISTAKES[name], tmp_path, capsys)


@pytest.mark.skipif(not COMPILES, reason="nothing is compiled")
@pytest.mark.parametrize("name", COMPILED_MISTAKES)
def test_a_mistake_that_matters_compiled_is_caught(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _check_policy(name, COMPILED_MISTAKES[name], tmp_path, capsys)


def _check_policy(name: str, mistake: Mistake, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = written(folder, name, POLICY, mistake), folder / "out"
    options = ("--plugin", file, "--policies", "mine", "--models", "cm")
    check_refused(call(capsys, "simulate", "--queries", 1, *SMALL, *options, "--out", out), file, mistake, out)


@pytest.mark.parametrize("name", MODEL_MISTAKES)
def test_a_mistake_in_a_click_model_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, name, MODEL, MODEL_MISTAKES[name])
    users = {"id": "q", "model": "mine", "items": ["a", "b"], "attraction": [0.4, 0.3], "patience": 0.5}
    (tmp_path / "q.json").write_text(json.dumps({"instances": [users]}))
    options = ("--plugin", file, "--policies", "original", "--out", tmp_path / "out")
    outcome = call(capsys, "simulate", tmp_path / "q.json", *SMALL, *options)
    check_refused(outcome, file, MODEL_MISTAKES[name], tmp_path / "out")


def test_the_library_refuses_it_too(tmp_path: Path) -> None:
    name = "learns_while_choosing"
    load_plugins([str(written(tmp_path, name, POLICY, POLICY_MISTAKES[name]))])
    with pytest.raises(ArgumentError, match=r"plugin: .*mistake_learns_while_choosing.py:\d+: choose\(\) of"):
        simulate(embedded_instances(2, models=("cm",)), "mine", rounds=10, repetitions=1)
    with pytest.raises(RankerError, match=r"mistake_learns_while_choosing.py:\d+: choose\(\) of"):
        Ranker("mine", original=["a", "b"])


def test_serve_refuses_it_before_it_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mistake = POLICY_MISTAKES["shows_an_item_twice"]
    file = written(tmp_path, "shows_an_item_twice", POLICY, mistake)
    outcome = call(capsys, "serve", "--plugin", file, "--store", tmp_path / "store")
    check_refused(outcome, file, mistake, tmp_path)
    assert not (tmp_path / "store").exists()
