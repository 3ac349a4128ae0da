"""Feedback tenfold, shuffled, late, forged, altered, foreign and impossible: the right answer each time.

What the service has learnt in the end is compared with the fold of ``ledger.py`` over what each visitor really clicked.
"""

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from http_load import Answer, Connections, get
from service_process import ServiceProcess

from tests.acceptance.service.ledger import fold_of, pairs_of
from tests.acceptance.service.stories import closed_view

WINDOW = 10.0
KEYS = {
    "shop": {"rank": "shop-rank-key", "feedback": "shop-feedback-key", "read": "shop-read-key"},
    "other": {"rank": "other-rank-key"},
}
CALL = {"context": "shelf / ä", "base_ranking": list("abcdef"), "candidates": list("xyz"), "k": 4}
PAGES, COPIES = 60, 10


def hashed(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ServiceProcess]:
    tenants = {name: {role: [hashed(key)] for role, key in keys.items()} for name, keys in KEYS.items()}
    settings = {
        "policy": "kl-ucb-br",
        "window_seconds": WINDOW,
        "tenants": json.dumps(tenants),
        "log_level": "warning",
        "max_lag_seconds": 60,
    }
    process = ServiceProcess(tmp_path, **settings)  # no 503 when other tests keep the machine busy
    process.key = KEYS["shop"]["read"]
    with process:
        yield process


class Case(NamedTuple):
    """A report, whose it is, and the status it must get."""

    report: dict[str, Any]
    status: int
    field: str | None = None
    key: str = KEYS["shop"]["feedback"]


class Shopping:
    """Pages, what was clicked on them, and everything that is reported about them."""

    def __init__(self, service: ServiceProcess, seed: int) -> None:
        self.connections = Connections(lambda: service.port, 32)
        self.chance = random.Random(seed)
        self.pages: list[dict[str, Any]] = []
        self.clicks: dict[str, set[str]] = {}

    async def rank(self, call: dict[str, Any], key: str = KEYS["shop"]["rank"]) -> dict[str, Any]:
        answer = await self.connections.post("/v1/rank", call, key)
        assert answer.status == 200, answer.body
        page: dict[str, Any] = answer.json()
        return page

    async def story(self, impression_id: str) -> dict[str, Any]:
        answer = await self.connections.send(get(f"/v1/impressions/{impression_id}", KEYS["shop"]["read"]))
        assert answer.status == 200, answer.body
        story: dict[str, Any] = answer.json()
        return story

    async def send(self, case: Case) -> Answer:
        return await self.connections.post("/v1/feedback", case.report, case.key)

    async def look(self, pages: int) -> None:
        self.pages = list(await asyncio.gather(*(self.rank(CALL) for _ in range(pages))))
        for page in self.pages:
            self.clicks[page["impression_id"]] = set(self.chance.sample(page["ranking"], self.chance.randrange(1, 4)))

    def true_reports(self) -> list[Case]:
        """What was clicked on each page, told in overlapping parts."""
        cases = []
        for number, page in enumerate(self.pages):
            clicked = sorted(self.clicks[page["impression_id"]])
            for part in range(1, len(clicked) + 1):
                report: dict[str, Any] = {"token": page["token"], "clicks": self.chance.sample(clicked[:part], part)}
                if number % 2:
                    report["event_id"] = f"page-{number}-part-{part}"
                cases.append(Case(report, 200))
        return cases

    async def false_reports(self) -> list[Case]:
        """What must be refused, one kind after the other, about pages that are open."""
        page, other = self.pages[0], await self.rank(CALL, KEYS["other"]["rank"])
        stories = [await self.story(each["impression_id"]) for each in self.pages]
        hiding = next(story for story in stories if story["hidden"])
        token, shown = page["token"], page["ranking"]
        hidden_token = next(each["token"] for each in self.pages if each["impression_id"] == hiding["impression_id"])
        unshown = next(item for item in [*"abcdefxyz"] if item not in shown)
        name, sealed = token.split(".")
        return [
            Case({"token": "no token at all", "clicks": shown[:1]}, 401, "token"),
            Case({"token": f"{name}.{_altered(sealed)}", "clicks": shown[:1]}, 401, "token"),
            Case({"token": f"k00000000.{sealed}", "clicks": shown[:1]}, 401, "token"),
            Case({"token": f"{name}.{sealed[:-2]}", "clicks": shown[:1]}, 401, "token"),
            Case({"token": name, "clicks": shown[:1]}, 401, "token"),
            Case({"token": f"{token}A", "clicks": shown[:1]}, 401, "token"),
            Case({"token": other["token"], "clicks": other["ranking"][:1]}, 403, "token"),
            Case({"token": token, "clicks": shown[:1]}, 403, "token", KEYS["other"]["rank"]),
            Case({"token": token, "clicks": shown[:1]}, 401, None, "no key of anybody"),
            Case({"token": hidden_token, "clicks": hiding["hidden"]}, 422, "clicks[0]"),
            Case({"token": token, "clicks": [shown[0], unshown]}, 422, "clicks[1]"),
            Case({"token": token, "clicks": ["never seen"]}, 422, "clicks[0]"),
            Case({"token": token, "clicks": [shown[0], shown[0]]}, 422, "clicks[1]"),
            Case({"token": token, "impression_id": page["impression_id"], "clicks": []}, 422, "token"),
            Case({"clicks": []}, 422, "token"),
            Case({"token": token}, 422, "clicks"),
            Case({"impression_id": page["impression_id"], "clicks": []}, 403, "impression_id"),
            Case({"impression_id": "AAAAAAAAAAAAAAAAAAAAAA", "clicks": []}, 404, "impression_id", KEYS["shop"]["rank"]),
            Case({"impression_id": other["impression_id"], "clicks": []}, 404, "impression_id", KEYS["shop"]["rank"]),
        ]  # fmt: skip


def _altered(text: str) -> str:
    """One letter in the middle is another one."""
    middle = len(text) // 2
    return text[:middle] + ("B" if text[middle] == "A" else "A") + text[middle + 1 :]


def check_refusal(case: Case, answer: Answer) -> None:
    assert answer.status == case.status, (case, answer.body)
    assert answer.header("content-type") == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem.get("field")) == (case.status, case.field), (case, problem)


async def report_everything(shopping: Shopping) -> Counter[str]:
    """Ten copies of every true report among the false ones, shuffled; what was said to the true ones."""
    true, false = shopping.true_reports(), await shopping.false_reports()
    cases = (true + false) * COPIES
    shopping.chance.shuffle(cases)
    answers = await asyncio.gather(*(shopping.send(case) for case in cases))
    said: Counter[str] = Counter()
    for case, answer in zip(cases, answers, strict=True):
        if case.status != 200:
            check_refusal(case, answer)
            continue
        assert answer.status == 200, (case, answer.body)
        content = answer.json()
        assert (content["accepted"], content["late"], content["state"]) == (True, False, "open"), content
        said["duplicate" if content["duplicate"] else "new"] += 1
    assert said["duplicate"] >= (COPIES - 1) * len(true)
    return said


async def reuse_an_event_id(shopping: Shopping) -> None:
    """The same event_id with another body is refused, in a batch beside others that are not."""
    page = shopping.pages[1]
    known = shopping.clicks[page["impression_id"]]
    other = next(item for item in page["ranking"] if item not in known)
    batch = [
        {"token": page["token"], "clicks": [other], "event_id": "page-1-part-1"},
        {"token": page["token"], "clicks": sorted(known)},
        {"token": "bad", "clicks": []},
    ]
    answer = await shopping.connections.post("/v1/feedback", {"batch": batch}, KEYS["shop"]["feedback"])
    assert answer.status == 200, answer.body
    first, second, third = answer.json()["results"]
    assert (first["status"], first["field"].removeprefix("batch[0].")) == (409, "event_id")
    assert (second["accepted"], second["duplicate"]) == (True, True)
    assert third["status"] == 401


async def report_late(shopping: Shopping) -> None:
    """All true reports once more, too late: nothing is accepted, and nothing refused as if it were false."""
    for case in shopping.true_reports():
        answer = await shopping.send(case)
        said = answer.json()
        assert (answer.status, said["late"] or said["duplicate"], said["state"]) == (200, True, "closed"), said
        if "event_id" not in case.report:
            assert (said["accepted"], said["late"]) == (False, True)
    stale = next(case for case in shopping.true_reports() if len(case.report["clicks"]) == 1)
    page = next(page for page in shopping.pages if page["token"] == stale.report["token"])
    others = [item for item in page["ranking"] if item not in shopping.clicks[page["impression_id"]]]
    answer = await shopping.send(Case({"token": page["token"], "clicks": others}, 200))
    assert (answer.json()["accepted"], answer.json()["late"]) == (False, True)


async def everything(service: ServiceProcess, seed: int) -> None:
    shopping = Shopping(service, seed)
    await shopping.look(PAGES)
    said = await report_everything(shopping)
    await reuse_an_event_id(shopping)
    stories = [await shopping.story(page["impression_id"]) for page in shopping.pages]
    assert {story["impression_id"]: set(story["clicks"]) for story in stories} == shopping.clicks
    assert all(story["state"] == "open" and story["counted"] for story in stories)
    await asyncio.sleep(WINDOW + 1.5)
    await report_late(shopping)
    view, metrics = closed_view(service, str(CALL["context"])), service.metrics()
    assert pairs_of(view) == fold_of(stories)
    assert view["arms"]["explore"] == {
        "pages": PAGES,
        "clicked_pages": PAGES,
        "clicks": sum(map(len, shopping.clicks.values())),
    }
    assert metrics["saferank_feedback_accepted_total"] == said["new"]
    shopping.connections.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_each_report_gets_the_right_answer_and_is_counted_once(service: ServiceProcess, seed: int) -> None:
    asyncio.run(everything(service, seed))
    assert service.stop() == 0
