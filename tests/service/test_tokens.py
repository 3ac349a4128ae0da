"""Tokens: nothing but what this service signed is accepted."""

import asyncio
import json
from pathlib import Path

import pytest

from saferank.service.identifiers import Tokens, from_text, rotate, tokens_of
from saferank.service.server import Server
from saferank.service.wire.problems import Problem
from saferank.store.contract import StoreError
from saferank.store.page_record import NO_LAW, PageRecord
from tests.service.house import House, run
from tests.store.laws import drawn_law
from tests.store.memory import MemoryStore

KEYS = {"old": b"o" * 32, "new": b"n" * 32}
PAGE = PageRecord(
    impression=bytes(range(16)), tenant="tenant", context="Schuhe, größe 43 / \U0001f45f", policy="safe-draw",
    arm=0, knowledge=7, round=2**41 + 5, window_ms=30 * 86_400_000, k=3, visitor=b"\0" * 7 + b"s",
    catalogue=b"d" * 16, coins=b"c" * 32, row=("a", "ü" * 256, "c", "hidden"),
    law=drawn_law(bytes(4), bytes([4] * 4), (1.0, 0.5, 0.25, 0.125), (14, 13, 11, 7)), challenger=3, request_id="r",
)  # fmt: skip


def seal(tokens: Tokens, record: PageRecord = PAGE) -> str:
    return tokens.seal(record.impression, record.packed())


def refusal(tokens: Tokens, token: str) -> str:
    with pytest.raises(Problem) as caught:
        tokens.open(token)
    assert (caught.value.status, caught.value.field) == (401, "token")
    return caught.value.detail


@pytest.mark.parametrize(
    "record",
    [PAGE, PAGE._replace(visitor=b"", challenger=None, request_id=None, law=NO_LAW, row=(), instead=("a", "b", "c"))],
)
def test_a_token_says_what_was_sealed(record: PageRecord) -> None:
    tokens = Tokens(KEYS, "new")
    assert tokens.open(seal(tokens, record))[0] == record
    assert seal(tokens, record) == seal(tokens, record)


def test_a_token_tells_a_browser_nothing_of_what_it_holds() -> None:
    """Neither names nor odds; and tokens of two pages that differ in the hidden item alone differ in many bits."""
    tokens = Tokens(KEYS, "new")
    held = from_text(seal(tokens).split(".")[1])
    assert held[:16] == PAGE.impression
    assert not any(secret in held for secret in (b"hidden", b"tenant", PAGE.coins, PAGE.visitor))
    other = PAGE._replace(impression=bytes(range(1, 17)))
    apart = from_text(seal(tokens, other).split(".")[1])
    assert sum((a ^ b).bit_count() for a, b in zip(held[16:], apart[16:], strict=True)) > len(held)


def test_tokens_of_an_older_key_are_accepted_until_it_is_removed() -> None:
    token = seal(Tokens(KEYS, "old"))
    assert Tokens(KEYS, "new").open(token)[0] == PAGE
    assert "no longer known" in refusal(Tokens({"new": KEYS["new"]}, "new"), token)


def test_a_token_with_any_letter_changed_is_refused() -> None:
    tokens = Tokens(KEYS, "new")
    token = seal(tokens)
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
    token = seal(Tokens({"mine": b"x" * 32}, "mine"))
    assert "signature" in refusal(Tokens({"mine": b"y" * 32}, "mine"), token)


KEPT = json.dumps({"k1": "33" * 32}).encode()


def test_keys_of_the_store_are_used_by_every_server() -> None:
    token = seal(tokens_of(KEPT))
    assert token.startswith("k1.")
    assert tokens_of(KEPT).open(token)[0] == PAGE


def test_a_rotation_is_accepted_everywhere_before_it_signs(tmp_path: Path) -> None:
    """Two servers on one store: no page of either is ever refused by the other, at any step."""

    async def test() -> None:
        h = House(tmp_path)
        store = MemoryStore(lambda: h.now)
        servers = [Server(h.settings, store, h, name) for name in ("one", "two")]
        for server in servers:
            await server.start(loops=False)
        old = servers[0].tokens

        async def turn(number: int) -> None:
            await servers[number].heartbeat.attempt()
            for one in servers:
                token = seal(one.tokens)
                assert all(other.tokens.open(token)[0] == PAGE for other in servers)

        rotating = asyncio.create_task(rotate(store))
        for number in (0, 1, 1, 0, 1, 0, 0, 1):
            await asyncio.sleep(0.15)
            await turn(number)
        name = await rotating
        assert all(seal(one.tokens).startswith(f"{name}.") for one in servers)
        assert servers[1].tokens.open(seal(old))[0] == PAGE

    run(test())


@pytest.mark.parametrize("content", [[], {}, {"k": 1}, {"k": "short"}, {"k": "zz" * 40}])
def test_damaged_keys_are_refused(content: object) -> None:
    with pytest.raises(StoreError, match="64 hexadecimal digits"):
        tokens_of(json.dumps(content).encode())
