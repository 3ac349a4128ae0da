"""``saferank.forecast``: against planted truth, and what it refuses."""

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saferank
from saferank.cli import app
from saferank.cli.terminal.options import learn_options
from saferank.errors import ArgumentError, UsageError
from saferank.forecasting.forecast import CERTIFICATE_DAYS, check_policies
from saferank.forecasting.playing import jobs_of, played, weekly
from saferank.forecasting.worlds import Traffic, Worlds
from saferank.instances import Instance
from saferank.logs import write_synthetic_log
from saferank.logs.synthetic import planted_instances
from saferank.progress import Meter
from saferank.service.settings import Settings
from saferank.service.wire.calls import FeedbackAnswer, FeedbackCall, RankCall
from saferank.verbs import Floats
from tests.service.house import START, House, T

SMALL: dict[str, Any] = {
    "policies": ("safe-draw",), "positions": 5, "model": "pbm", "iterations": 60, "replicates": 6,
    "most_pages": 8000, "jobs": 2, "progress": False,
}  # fmt: skip
LOGS = 8


def planted_log(path: Path, seed: int, sessions: int = 3000) -> list[Instance]:
    """A log of four queries whose users are known; each seed has other queries."""
    return write_synthetic_log(path, planted_instances(4, "pbm", seed=seed + 1), sessions, seed)


def actual(truth: list[Instance], found: saferank.Forecast, seed: int) -> Floats:
    """Extra clicks a day by week of one run under the planted users, with the same traffic."""
    lengths = {instance.id: 10 for instance in truth}
    traffic = Traffic(found.pages_a_day, {query.id: query.pages_a_day for query in found.queries})
    worlds = Worlds("pbm", truth, [[]], lengths, {})
    jobs = jobs_of(worlds, traffic, ("safe-draw",), 5, "anytime:1e-5", 8000, 1000 + seed, found.certificate_days)
    runs = played(jobs, 2, Meter(0))
    total: Floats = weekly(np.sum([each.extra for each in runs], axis=0))[0]
    return total


async def served(folder: Path, truth: list[Instance], found: saferank.Forecast, seed: int) -> Floats:
    """Extra clicks a day by week of the service itself under the planted users: pages, tokens, windows and epochs of
    certificates, with the settings that the forecast is made for. Pages are closed at the end of their day."""
    dice, extra = np.random.default_rng(seed), np.zeros(13)
    models = {instance.id: instance.model for instance in truth}
    rates = np.array([query.pages_a_day for query in found.queries])
    h = House(folder, policy="safe-draw", rule="anytime:1e-5", certificate_days=found.certificate_days)
    await h.start()
    h.server.session_key = bytes(32)  # the coins are the same in every run of the test
    for day in range(91):
        await h.server.heartbeat.attempt()
        reports = []
        pages = np.diff(np.floor(np.outer([day, day + 1], rates)), axis=0)[0].astype(int)
        for query in np.repeat(np.arange(len(rates)), pages):
            h.now += 10
            model, name = models[found.queries[query].id], str(query)
            items, session = [str(item) for item in range(len(model.attraction))], str(h.now)
            page = await h.server.rank(T, RankCall(context=name, base_ranking=items, k=5, session_id=session))
            chances = model.examination[:5] * model.attraction[[int(item) for item in page.ranking]]
            extra[day // 7] += chances.sum() - (model.examination[:5] * model.attraction[:5]).sum()
            clicks = [item for item, click in zip(page.ranking, dice.random(5) < chances, strict=True) if click]
            if clicks:
                reports.append(FeedbackCall(token=page.token, clicks=clicks))
        answers = await h.server.feedback(T, reports)
        assert all(isinstance(answer, FeedbackAnswer) and answer.accepted for answer in answers)
        h.now = START + (day + 1) * 86_400_000
        await h.server.closer.close_due(everything=True)
    await h.stop()
    return extra / 7


def test_the_lift_of_the_service_lies_in_the_band_and_a_lifetime_costs_some_of_it(tmp_path: Path) -> None:
    """One planted log and the service's default policy. At 100 pages a day a lifetime of 14 days costs a good third of
    the lift (8.7 instead of 14.2 clicks a day), which a forecast without lifetimes does not know."""
    truth = planted_log(tmp_path / "log.gz", 1, sessions=12_000)
    asked = {**SMALL, "policies": ("safe-draw",), "seed": 1}
    found = saferank.forecast(tmp_path / "log.gz", "yandex-personalized", 100, **asked)
    endless = saferank.forecast(tmp_path / "log.gz", "yandex-personalized", 100, certificate_days=0, **asked)
    happened = asyncio.run(served(tmp_path / "store", truth, found, 1))
    band = found.policies[0].whole
    assert band.low <= happened.mean() <= band.high
    assert band.estimate < 0.75 * endless.policies[0].whole.estimate


def test_the_actual_lift_lies_in_the_band(tmp_path: Path) -> None:
    """Eight planted logs. The band is one of 90 %: that the outcome of the whole time lies outside in three or more of
    eight has probability 0.04 if that is so; it is asserted that it does in at most two. Of all weeks of all logs, at
    least 80 % lie inside."""
    inside, weeks_inside = 0, []
    for seed in range(LOGS):
        truth = planted_log(tmp_path / "log.gz", seed)
        found = saferank.forecast(tmp_path / "log.gz", "yandex-personalized", 300, seed=seed, **SMALL)
        happened, policy = actual(truth, found, seed), found.policies[0]
        inside += policy.whole.low <= happened.mean() <= policy.whole.high
        weeks_inside += [band.low <= x <= band.high for band, x in zip(policy.weeks, happened, strict=True)]
    assert inside >= LOGS - 2
    assert np.mean(weeks_inside) >= 0.8


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> saferank.Forecast:
    path = tmp_path_factory.mktemp("log") / "log.gz"
    planted_log(path, 3)
    return saferank.forecast(path, "yandex-personalized", 300, **SMALL)


def test_all_answers_are_there(found: saferank.Forecast) -> None:
    (policy,) = found.policies
    assert len(policy.weeks) == 13 and all(band.low <= band.estimate <= band.high for band in policy.weeks)
    for counts in policy.decided.values():
        assert sum(count.mean for count in counts.values()) == pytest.approx(len(found.queries))
    assert policy.decided[7]["changed"].mean <= policy.decided[90]["changed"].mean
    assert 0 < policy.worst_page <= 1
    assert sum(query.pages_a_day for query in found.queries) == pytest.approx(300 * found.covered)
    assert "clicks a day after 91 days" in found.headline and "safe-draw" in repr(found)


def test_the_threads_do_not_matter(found: saferank.Forecast, tmp_path: Path) -> None:
    planted_log(tmp_path / "log.gz", 3)
    again = saferank.forecast(tmp_path / "log.gz", "yandex-personalized", 300, **{**SMALL, "jobs": 1})
    assert again.policies == found.policies


def test_the_files_hold_the_numbers_and_the_page(found: saferank.Forecast, tmp_path: Path) -> None:
    data, page = found.save(tmp_path)
    content = json.loads(data.read_text(encoding="utf-8"))
    assert content["policies"][0]["weeks"][0]["estimate"] == found.policies[0].weeks[0].estimate
    assert {"provenance", "production_clicks_a_day", "covered", "queries", "model", "band"} <= content.keys()
    html = page.read_text(encoding="utf-8")
    assert found.policies[0].worst_query in html and "http" not in html.replace("http://www.w3.org", "")
    assert len(list((tmp_path / "figures").glob("*.png"))) == 3


def test_the_model_that_foresees_best_is_taken(tmp_path: Path) -> None:
    planted_log(tmp_path / "log.gz", 1, sessions=1500)
    few = {**SMALL, "model": None, "iterations": 20, "replicates": 4, "most_pages": 1000}
    chosen = saferank.forecast(tmp_path / "log.gz", "yandex-personalized", 10, **few)
    assert chosen.model == max(chosen.log_likelihoods, key=lambda name: chosen.log_likelihoods[name])
    assert chosen.model in ("pbm", "ubm") and "cm" not in chosen.log_likelihoods


def written(path: Path, pages: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(page) + "\n" for page in pages), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pages_a_day": 0}, "pages_a_day: found 0, expected the pages that all queries of the site have in a day"),
        ({"pages_a_day": float("nan")}, "pages_a_day: found nan"),
        ({"pages_a_day": "300"}, "pages_a_day: found '300'"),
        ({"policies": ("no-such",)}, "policies: unknown policy 'no-such'; known ones:"),
        ({"policies": ("original",)}, "policies: original gives no certificates"),
        ({"policies": ()}, "policies: found .*expected a list of names"),
        ({"policies": ("safe-draw", "safe-draw")}, "policies: safe-draw is there twice"),
        ({"rule": "paper:1e-5", "policies": ("safe-draw",)}, "rule: safe-draw takes the rule anytime:ALPHA"),
        ({"certificate_days": -1}, "certificate_days: found -1, expected days from 0 .certificates never end. to 3650"),
        ({"model": "xyz"}, "model: no estimation for click model 'xyz'"),
        ({"replicates": 2}, "replicates: found 2, expected at least 4"),
        ({"most_pages": 10}, "most_pages: found 10, expected at least 1000"),
        ({"positions": 0}, "positions: found 0"),
        ({"jobs": 0}, "jobs: found 0"),
    ],
)
def test_arguments_that_cannot_be_used(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=message):
        saferank.forecast(tmp_path / "none", "sessions", **{"pages_a_day": 100, **SMALL, **given})


def test_logs_that_cannot_be_used(tmp_path: Path) -> None:
    page: dict[str, Any] = {"query": "q", "items": ["a", "b"], "clicked": []}
    silent = written(tmp_path / "silent", [page] * 30)
    with pytest.raises(UsageError, match="no page of its most frequent queries has a click"):
        saferank.forecast(silent, "sessions", 100, **SMALL)
    single = written(tmp_path / "single", [{**page, "items": ["a"], "clicked": ["a"]}] * 30)
    with pytest.raises(UsageError, match="no query has a page of two items or more"):
        saferank.forecast(single, "sessions", 100, **SMALL)
    with pytest.raises(UsageError, match=r"empty|no page|nothing"):
        saferank.forecast(written(tmp_path / "empty", []), "sessions", 100, **SMALL)
    with pytest.raises(UsageError, match=r"cannot be read|No such file"):
        saferank.forecast(tmp_path / "missing", "sessions", 100, **SMALL)


def test_sessions_are_taken_as_a_list_too() -> None:
    silent = [{"query": "q", "items": ["a", "b"], "clicked": []}]
    with pytest.raises(UsageError, match="1 sessions: no page of its most frequent queries has a click"):
        saferank.forecast(silent, "sessions", 100, **SMALL)


def test_certificates_live_as_long_as_in_the_service_unless_said_otherwise(found: saferank.Forecast) -> None:
    assert CERTIFICATE_DAYS == Settings().certificate_days == found.certificate_days
    learn_options(app, ["forecast"])
    (command,) = [each.callback for each in app.registered_commands if each.name == "forecast"]
    assert command is not None
    assert inspect.signature(command).parameters["certificate_days"].default == CERTIFICATE_DAYS


def test_policies_are_checked_before_anything_is_read() -> None:
    check_policies(("safe-draw", "kl-ucb-br"), "anytime:1e-4")
    with pytest.raises(ArgumentError, match="rule"):
        check_policies(("safe-draw",), "sometimes")
