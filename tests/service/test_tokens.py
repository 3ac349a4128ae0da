"""Tokens: nothing but what this service signed is accepted."""

import json
import stat
from pathlib import Path

import pytest

from saferank.service.problems import Problem
from saferank.service.settings import Settings
from saferank.service.token_keys import FILE_NAME, tokens_of
from saferank.service.tokens import Claim, Tokens

KEYS = {"old": b"o" * 32, "new": b"n" * 32}
CLAIM = Claim(
    tenant="tenant", context="Schuhe, größe 43 / \U0001f45f", impression=bytes(range(16)), arm=0, round=2**32 - 1,
    leader_version=7, window_ms=30 * 86_400_000, exchanged=(1 << 51) - 1, session=b"\0" * 7 + b"s", coins=b"c" * 32,
    row=("a", "ü" * 256, "c", "hidden"), n_shown=3, group_ends=(1, 3, 4), challenger=3,
)  # fmt: skip


def refusal(tokens: Tokens, token: str) -> str:
    with pytest.raises(Problem) as caught:
        tokens.read(token)
    assert (caught.value.status, caught.value.field) == (401, "token")
    return caught.value.detail


@pytest.mark.parametrize("claim", [CLAIM, CLAIM._replace(session=b"", challenger=None, group_ends=())])
def test_a_token_says_what_was_signed(claim: Claim) -> None:
    tokens = Tokens(KEYS, "new")
    assert tokens.read(tokens.sign(claim)) == claim
    assert tokens.sign(claim) == tokens.sign(claim)


def test_tokens_of_an_older_key_are_accepted_until_it_is_removed() -> None:
    token = Tokens(KEYS, "old").sign(CLAIM)
    assert Tokens(KEYS, "new").read(token) == CLAIM
    assert "no longer known" in refusal(Tokens({"new": KEYS["new"]}, "new"), token)


def test_a_token_with_any_letter_changed_is_refused() -> None:
    tokens = Tokens(KEYS, "new")
    token = tokens.sign(CLAIM)
    for place, letter in enumerate(token):
        for other in {"A", "B", "w", ".", "=", "-"} - {letter}:
            refusal(tokens, token[:place] + other + token[place + 1 :])
        refusal(tokens, token[:place] + token[place + 1 :])


@pytest.mark.parametrize(
    "token", ["", ".", "..", "new.", "new..", "new.AAAA.", "ü.ü.ü", "new.AA.AA", "\ud800", "a" * 9999]
)
def test_what_was_never_a_token_is_refused(token: str) -> None:
    refusal(Tokens(KEYS, "new"), token)


def test_the_same_key_under_another_name_does_not_help() -> None:
    token = Tokens({"mine": b"x" * 32}, "mine").sign(CLAIM)
    assert "signature" in refusal(Tokens({"mine": b"y" * 32}, "mine"), token)


def test_keys_are_made_once_and_are_for_the_owner_alone(tmp_path: Path) -> None:
    token = tokens_of(Settings(), tmp_path).sign(CLAIM)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert tokens_of(Settings(), tmp_path).read(token) == CLAIM


def test_keys_of_the_settings_take_precedence(tmp_path: Path) -> None:
    settings = Settings(token_keys={"one": "11" * 32, "two": "22" * 32})
    assert tokens_of(settings, tmp_path).sign(CLAIM).startswith("two.")
    named = Settings(token_keys={"one": "11" * 32, "two": "22" * 32}, token_key="one")
    assert tokens_of(named, tmp_path).sign(CLAIM).startswith("one.")
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize("content", [[], {}, {"k": 1}, {"k": "short"}, {"k": "zz" * 40}])
def test_a_damaged_key_file_is_refused(tmp_path: Path, content: object) -> None:
    (tmp_path / FILE_NAME).write_text(json.dumps(content))
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        tokens_of(Settings(), tmp_path)
