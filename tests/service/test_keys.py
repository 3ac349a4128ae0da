"""Keys: made, hashed, recognised."""

import pytest

from saferank.service.keys import Keys, Principal, hashed, new_key
from saferank.service.settings import TenantKeys
from saferank.service.wire.problems import Problem


def test_new_keys_differ_and_say_what_they_are_for() -> None:
    assert new_key("rank").startswith("saferank_rank_")
    assert len({new_key("feedback") for _ in range(100)}) == 100


def test_both_headers_and_several_keys_of_a_tenant() -> None:
    keys = Keys({"shop": TenantKeys(rank=(hashed("old"), hashed("new")), feedback=(hashed("web"),))})
    assert keys.caller([(b"authorization", b"Bearer old")])[:2] == ("shop", "rank")
    assert keys.caller([(b"x-api-key", b"new")])[:2] == ("shop", "rank")
    assert keys.caller([(b"x-api-key", b"web")])[:2] == ("shop", "feedback")
    assert keys.caller([(b"x-api-key", b"web"), (b"authorization", b"Bearer new")]).role == "rank"


@pytest.mark.parametrize(
    "header",
    [
        (b"authorization", b"Bearer"), (b"authorization", b"Bearer "), (b"authorization", b"old"),
        (b"authorization", b"Basic old"), (b"x-api-key", b""), (b"x-api-key", b"\xff\xfe"),
        (b"x-api-key", b"o" * 100_000), (b"x-api-key", hashed("old").encode()), (b"cookie", b"old"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(Problem) as caught:
        Keys({"shop": TenantKeys(rank=(hashed("old"),))}).caller([header])
    assert caught.value.status == 401


def test_a_tenant_without_keys_cannot_be_entered() -> None:
    with pytest.raises(Problem):
        Keys({"shop": TenantKeys()}).caller([(b"x-api-key", b"")])


def test_without_tenants_everybody_is_the_default_one() -> None:
    assert Keys({}).caller([]) == Principal("default", "all", "anonymous (no keys)")
