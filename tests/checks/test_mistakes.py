"""Typical mistakes of plug-in authors: each is caught before the first result, by a sentence with file and fix.

``mistakes/`` has one plug-in for each. Where a line has the comment ``# FAULT``, the sentence names that line.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from saferank import ArgumentError, Ranker, RankerError, simulate
from saferank.click_models import CLICK_MODELS
from saferank.instances import embedded_instances
from saferank.plugins import load_plugins
from saferank.policies import POLICIES
from tests.cli.command_line import Outcome, call

HOME = Path(__file__).parent / "mistakes"
COMPILES = os.environ.get("NUMBA_DISABLE_JIT") != "1"
SMALL = ("--rounds", 10, "--repetitions", 1, "--positions", 2, "--jobs", 1)


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


POLICY_MISTAKES = {
    "shows_an_item_twice": ["shows an item twice", "A page needs different items"],
    "writes_behind_the_page": ["IndexError", "A page has room for 4 places"],
    "shows_too_few_items": ["uses 2 places for 3 positions", "at least the number of positions"],
    "forgets_to_learn": ["learn() is not implemented for Mine", "@implements(learn, Mine)"],
    "has_no_round": ["has no field round", "np.zeros(1, np.int64)"],
    "counts_in_floats": ["state.clicks of counts-in-floats is declared as an array of int64", "the dtype np.int64"],
    "keeps_a_list": ["state.clicks of keeps-a-list cannot be saved", "fields are arrays of numbers"],
    "draws_from_numpy": ["uses np.random.randint, a hidden source of randomness", "Draw from rng alone"],
    "draws_from_random": ["uses random.randrange, a hidden source of randomness", "Draw from rng alone"],
    "looks_at_the_clock": ["uses time.time, a clock", "Count pages in state.round"],
    "learns_while_choosing": ["choose() of learns-while-choosing changes state.clicks", "Change it in learn()"],
    "learns_from_hidden_items": ["learn() of learns-from-hidden-items fails", "the click of a hidden place is 0"],
    "divides_by_zero": ["leaves NaN in state.share", "Test for zero before you divide"],
    "takes_a_known_name": ["the name is taken by a policy of saferank.policies.kl_ucb_br", "choose another one"],
    "makes_an_array": ["calls np.argsort, which makes an array", "Make the array in start()"],
    "fails_on_short_pages": ["fails with n_items=6, n_positions=1", "Compiled code would read or write beyond"],
    "shares_its_state": ["gives every state the same array as state.clicks", "make new arrays each time"],
    "reads_its_last_page": ["gives another state.clicks, state.share when choose() was", "from the impression"],
    "writes_into_the_page": ["writes into the impression", "Copy what you need"],
    "leads_with_too_few": ["leader() of leads-with-too-few returns [0]", "at least 3 different items"],
    "promises_too_much": [
        "is registered with safe=True, but shows [5, 4, 3, 2, 1, 0]",
        "or register it without safe=True",
    ],
    "assumes_an_unknown_model": ["made_for='nope', which is no click model", "leave made_for out"],
    "never_ends": ["choose() of never-ends does not end", "Let every loop have an end"],
    "writes_a_global_array": [
        "choose() of writes-a-global-array writes the global variable PAGES",
        "Give the state an array",
    ],
    "registers_nothing": ["registers neither a policy nor a click model", "call register("],
    "misspells_a_part": ["a policy has no part 'certify'", "known ones: start, leader, certifies"],
}
COMPILED_MISTAKES = {
    "calls_a_plain_function": ["calls _next(), a plain Python function", "Decorate _next with @kernel"],
    "wraps_around": ["does something else compiled than interpreted, on page 1", "convert with int()"],
}
MODEL_MISTAKES = {
    "expects_other_clicks": ["Mine expects 0.7000 clicks", "let expected_clicks() return the mean of the clicks"],
    "clicks_by_numpy": ["uses np.random.random, a hidden source of randomness", "Draw from rng alone"],
    "leaves_old_clicks": ["must write 0 or 1 for every position", "write the positions without a click too"],
    "has_no_shape": ["field 'patience' of click model Mine has no shape", "annotate it as PerItem"],
}


def check_refused(outcome: Outcome, name: str, parts: list[str], out: Path) -> None:
    """One line that names the file, the line where it is marked, the mistake and the fix; nothing was played."""
    file = HOME / f"mistake_{name}.py"
    lines = [line for line in outcome.err.splitlines() if not line.startswith("compiling")]
    assert (outcome.code, outcome.out, len(lines)) == (2, "", 1), outcome
    marked = [number for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# FAULT")]
    assert str(file) in lines[0]
    assert all(part in lines[0] for part in parts), lines[0]
    assert all(f"{file}:{number}: " in lines[0] or f"(line {number} of {file})" in lines[0] for number in marked)
    assert not (out / "results.json").exists()


@pytest.mark.parametrize("name", POLICY_MISTAKES)
def test_a_mistake_in_a_policy_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--plugin", HOME / f"mistake_{name}.py", "--policies", name.replace("_", "-"), "--models", "cm")
    outcome = call(capsys, "simulate", "--queries", 1, *SMALL, *options, "--out", tmp_path)
    check_refused(outcome, name, POLICY_MISTAKES[name], tmp_path)


@pytest.mark.skipif(not COMPILES, reason="nothing is compiled")
@pytest.mark.parametrize("name", COMPILED_MISTAKES)
def test_a_mistake_that_matters_compiled_is_caught(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--plugin", HOME / f"mistake_{name}.py", "--policies", name.replace("_", "-"), "--models", "cm")
    outcome = call(capsys, "simulate", "--queries", 1, *SMALL, *options, "--out", tmp_path)
    check_refused(outcome, name, COMPILED_MISTAKES[name], tmp_path)


@pytest.mark.parametrize("name", MODEL_MISTAKES)
def test_a_mistake_in_a_click_model_is_caught(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = {"id": "q", "model": name.replace("_", "-"), "items": ["a", "b"], "attraction": [0.4, 0.3], "patience": 0.5}
    (tmp_path / "q.json").write_text(json.dumps({"instances": [users]}))
    options = ("--plugin", HOME / f"mistake_{name}.py", "--policies", "original", "--out", tmp_path / "out")
    outcome = call(capsys, "simulate", tmp_path / "q.json", *SMALL, *options)
    check_refused(outcome, name, MODEL_MISTAKES[name], tmp_path / "out")


def test_every_mistake_is_tried() -> None:
    files = {file.stem.removeprefix("mistake_") for file in HOME.glob("mistake_*.py")}
    assert files == {*POLICY_MISTAKES, *COMPILED_MISTAKES, *MODEL_MISTAKES}
    assert len(files) >= 20


def test_the_library_refuses_it_too() -> None:
    load_plugins([str(HOME / "mistake_learns_while_choosing.py")])
    with pytest.raises(ArgumentError, match=r"plugin: .*mistake_learns_while_choosing.py:\d+: choose\(\) of"):
        simulate(embedded_instances(2, models=("cm",)), "learns-while-choosing", rounds=10, repetitions=1)
    with pytest.raises(RankerError, match=r"mistake_learns_while_choosing.py:\d+: choose\(\) of"):
        Ranker("learns-while-choosing", original=["a", "b"])


def test_serve_refuses_it_before_it_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--plugin", HOME / "mistake_shows_an_item_twice.py", "--store", tmp_path / "store")
    outcome = call(capsys, "serve", *options)
    check_refused(outcome, "shows_an_item_twice", POLICY_MISTAKES["shows_an_item_twice"], tmp_path)
    assert not (tmp_path / "store").exists()
