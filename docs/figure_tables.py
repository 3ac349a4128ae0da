"""The tables of measured figures, made from docs/reference/figures.json, which ``make figures`` writes.

A page holds a table between two comments, and ``docs/generate.py`` writes what stands between them:

    <!-- figures: regret -->
    <!-- end of figures -->
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "reference" / "figures.json"
BLOCK = re.compile(r"(<!-- figures: ([\w-]+) -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)

WITHOUT_TRUST = "safe-draw:trust=0.5"
LABELS = {
    "safe-draw": "safe-draw",
    WITHOUT_TRUST: "safe-draw with `trust` .5",
    "kl-ucb-br": "KL-UCB-BR",
    "bubble-rank": "BubbleRank",
    "uni-rank": "UniRank",
    "top-rank": "TopRank",
    "original": "original",
}
ARRANGEMENTS = {"as it is": "as they are", "optimal": "the original is optimal", "none of the best": "none of the best"}

Figures = dict[str, Any]
"""By name of a measurement what it found."""

TABLES: dict[str, Callable[[Figures], list[str]]] = {}


def table_of(name: str) -> Callable[[Callable[[Figures], list[str]]], Callable[[Figures], list[str]]]:
    """Offer a function that writes the lines of a block under a name."""

    def keep(function: Callable[[Figures], list[str]]) -> Callable[[Figures], list[str]]:
        TABLES[name] = function
        return function

    return keep


def with_tables(text: str) -> str:
    """A page with all of its tables written again."""
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    figures = {name: entry["measured"] for name, entry in kept.items()} | {"_kept": kept}
    return BLOCK.sub(lambda found: found[1] + "\n".join(TABLES[found[2]](figures)) + "\n" + found[4], text)


def pages() -> list[Path]:
    """The pages that hold such tables."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if BLOCK.search(page.read_text(encoding="utf-8"))]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _slashed(values: Iterable[str]) -> str:
    return " / ".join(values)


def _rows(figures: Figures, name: str, /, **where: Any) -> list[dict[str, Any]]:
    return [row for row in figures[name] if all(row[key] == value for key, value in where.items())]


def _row(figures: Figures, name: str, /, **where: Any) -> dict[str, Any]:
    (found,) = _rows(figures, name, **where)
    return found


# --- where and when ---


@table_of("provenance")
def _provenance(figures: Figures) -> list[str]:
    kept = figures["_kept"]
    machines = {f"{entry['machine']['processor']}, {entry['machine']['cores']} cores" for entry in kept.values()}
    rows = [
        (f"`{name}`", f"`{entry['commit']}`", f"{entry['seconds']:,} s", f"{entry['machine']['load_before']}")
        for name, entry in kept.items()
    ]
    said = f"Measured on {'; '.join(sorted(machines))}. Load is that of the machine when the measurement began."
    return [said, "", *_table(("measurement", "commit", "took", "load"), rows)]


# --- README ---


@table_of("five-numbers")
def _five_numbers(figures: Figures) -> list[str]:
    def held_out(policy: str) -> dict[str, Any]:
        return _row(figures, "regret", half="held-out", arrangement="as it is", model="pbm", policy=policy)

    policies = ("safe-draw", "uni-rank", "top-rank", "kl-ucb-br")
    ours, faults = held_out("safe-draw"), figures["faults"]
    first = ours["clicks_relative"]
    cost = figures["call_cost"]
    return _table(
        ("", ""),
        [
            (
                "clicks lost in 100,000 simulated pages (position-based model, 30 real queries not used for tuning): "
                "safe-draw / UniRank / TopRank / KL-UCB-BR",
                _slashed(f"{held_out(policy)['regret']:,.0f}" for policy in policies),
            ),
            (
                "pages of such a run that break the safety limit",
                _slashed(f"{held_out(policy)['violations']:,.0f}" for policy in policies),
            ),
            (
                "clicks relative to your ranking over the first 100 / 1,000 / 10,000 pages, safe-draw; worst page",
                f"{_slashed(f'{value:.2f}' for value in first[1:4])}; {ours['worst_page']:.2f}",
            ),
            (
                "processor time of a rank call / of a durable report, as multiples of a server that only answers",
                f"{cost['rank_us'] / cost['echo_rank_us']:.1f} / {cost['feedback_us'] / cost['echo_feedback_us']:.1f}",
            ),
            (
                f"{faults['faults']} faults in two servers under load: clicks acknowledged / lost / counted twice",
                f"{faults['acknowledged']:,} / 0 / 0",
            ),
        ],
    )


# --- the simulator ---


@table_of("rounds")
def _rounds(figures: Figures) -> list[str]:
    timings = figures["rounds"]["timings"]
    rows = []
    for policy in dict.fromkeys(timing["policy"] for timing in timings):
        columns = []
        for model in ("pbm", "cm"):
            (found,) = (each for each in timings if (each["policy"], each["model"]) == (policy, model))
            columns += [f"{found['nanoseconds']:,.0f} ns", f"{found['multiple']:.1f}"]
        rows.append((policy, *columns))
    head = ("policy", "PBM: a round", "multiple of the bare loop", "CM: a round", "multiple of the bare loop")
    speed = figures["rounds"]["speed_up"]
    return [*_table(head, rows), "", f"{speed['jobs']} threads are {speed['factor']:.2f} times as fast as one."]


@table_of("regret")
def _regret(figures: Figures) -> list[str]:
    columns = [(model, half) for model in ("pbm", "cm") for half in ("held-out", "development")]
    rows = []
    for arrangement, label in ARRANGEMENTS.items():
        for policy in ("safe-draw", WITHOUT_TRUST, "uni-rank", "top-rank", "kl-ucb-br", "bubble-rank"):
            found = [
                _row(figures, "regret", arrangement=arrangement, model=model, half=half, policy=policy)
                for model, half in columns
            ]
            rule = f", `{found[0]['rule']}`" if found[0]["rule"] else ""
            numbers = [f"{row['regret']:,.0f} ({row['stderr']:.0f})" for row in found]
            first = label if policy == "safe-draw" else ""
            rows.append((first, LABELS[policy] + rule, *numbers))
    return _table(("", "", *(f"{model.upper()}, {half}" for model, half in columns)), rows)


@table_of("first-pages")
def _first_pages(figures: Figures) -> list[str]:
    rows = []
    for arrangement in ("as it is", "optimal"):
        label = ARRANGEMENTS[arrangement]
        for policy in ("safe-draw", WITHOUT_TRUST, "uni-rank", "top-rank", "kl-ucb-br"):
            found = [
                _row(figures, "regret", half="held-out", arrangement=arrangement, model=model, policy=policy)
                for model in ("pbm", "cm")
            ]
            first = [_slashed(f"{row['clicks_relative'][number]:.3f}" for row in found) for number in range(4)]
            worst = _slashed(f"{row['worst_page']:.2f}" for row in found)
            broken = _slashed(f"{row['violations']:,.0f}" for row in found)
            rows.append((label if policy == "safe-draw" else "", LABELS[policy], *first, worst, broken))
    head = ("", "PBM / CM", "first 50 pages", "100", "1,000", "10,000", "worst page of a run", "violations a run")
    return _table(head, rows)


@table_of("one-rule")
def _one_rule(figures: Figures) -> list[str]:
    rows = [
        (LABELS[row["policy"]], f"`{row['rule']}`", row["model"].upper(), f"{row['regret']:,.0f} ({row['stderr']:.0f})")
        for row in figures["one_rule"]
    ]
    return _table(("policy", "rule", "users", "regret (s.e.)"), rows)


@table_of("other-models")
def _other_models(figures: Figures) -> list[str]:
    rows = [
        (
            row["model"].upper(),
            f"{row['regret']:,.0f} ({row['stderr']:.0f})",
            f"{row['violations']:,.0f}",
            f"{row['wrong_certificates']:.3f}",
            f"{row['worst_page']:.2f}",
            _slashed(f"{value:.2f}" for value in row["clicks_relative"][1:4]),
        )
        for row in figures["other_models"]
    ]
    head = ("users", "regret (s.e.)", "violations", "wrong certificates", "worst page of a run")
    return _table((*head, "clicks, first 100 / 1,000 / 10,000"), rows)


@table_of("trust")
def _trust(figures: Figures) -> list[str]:
    sizes = list(dict.fromkeys((row["shown"], row["items"]) for row in figures["trust"]))
    rows = []
    for sure in dict.fromkeys(row["trust"] for row in figures["trust"]):
        found = [_row(figures, "trust", trust=sure, shown=shown, items=items) for shown, items in sizes]
        rows.append((f"{sure:g}", *(f"{row['equal']:.2f} / {row['best_first']:.2f}" for row in found)))
    return _table(("`trust`", *(f"{shown} of {items} items" for shown, items in sizes)), rows)


def _gains(row: dict[str, Any]) -> list[str]:
    errors = [f" ({error:.1f})" if error is not None else "" for error in row["stderr"]]
    return [f"{gain:+.1f}{error}" for gain, error in zip(row["gain_percent"], errors, strict=True)]


@table_of("large")
def _large(figures: Figures) -> list[str]:
    rows = []
    for items in dict.fromkeys(row["items"] for row in figures["large"]):
        for row in _rows(figures, "large", items=items):
            label = f"{items:,} ({row['worlds']} worlds, best {row['best_percent']:+.1f})"
            first = label if row is _rows(figures, "large", items=items)[0] else ""
            rows.append((first, LABELS[row["policy"]], *_gains(row), f"{row['violations']:,.0f}"))
    return _table(("items", "", "at 1,000 pages", "at 10,000", "at 100,000", "violations a run"), rows)


@table_of("candidate-order")
def _candidate_order(figures: Figures) -> list[str]:
    names = ("production's", "random", "reversed")
    rows = [(name, *_gains(row)) for name, row in zip(names, figures["candidate_order"], strict=True)]
    return _table(("order of the candidates", "at 1,000 pages", "at 10,000"), rows)


@table_of("drift")
def _drift(figures: Figures) -> list[str]:
    rows = []
    for model in ("pbm", "cm"):
        for world in dict.fromkeys(row["world"] for row in _rows(figures, "drift", model=model)):
            for row in _rows(figures, "drift", model=model, world=world):
                life = "none" if row["lifetime"] is None else f"{row['lifetime']:,}"
                after = _slashed(f"{number:,.0f}" for number in row["violations_after"])
                numbers = (f"{row['regret']:,.0f}", f"{row['regret_after']:,.0f}", f"{row['violations_before']:,.0f}")
                rows.append((world, model.upper(), LABELS[row["policy"]], life, *numbers, after))
    head = ("world", "users", "policy", "D", "regret at 1e5", "of it after 5e4")
    return _table((*head, "violations before", "after: to 6e4 / 7e4 / 1e5"), rows)


@table_of("worlds")
def _worlds(figures: Figures) -> list[str]:
    lines = []
    for model in ("pbm", "cm"):
        found = _rows(figures, "worlds", model=model)
        policies = list(dict.fromkeys(row["policy"] for row in found))
        rows = []
        for world in dict.fromkeys(row["world"] for row in found):
            cells = [next(row for row in found if (row["world"], row["policy"]) == (world, name)) for name in policies]
            rows.append((world, *(_cell_of_a_world(cell) for cell in cells)))
        lines += ["", *_table((model.upper(), *(LABELS[name] for name in policies)), rows)]
    return lines[1:]


def _cell_of_a_world(row: dict[str, Any]) -> str:
    violations = f"; {row['violations']:,.1f}" if row["violations"] else ""
    return f"{row['regret']:,.0f} ({row['stderr']:.0f}){violations}"


@table_of("model-wrong")
def _model_wrong(figures: Figures) -> list[str]:
    lines = []
    for title, found in figures["model_wrong"].items():
        for measure, about in (("regret", "regret at 100,000 rounds"), ("violations", "violations a run")):
            lines += ["", f"{title}, {found[0]['queries']} queries, 2 repetitions: {about}", ""]
            lines += _by_model(found, measure)
    return lines[1:]


def _by_model(found: list[dict[str, Any]], measure: str) -> list[str]:
    models = list(dict.fromkeys(row["model"] for row in found))
    rows = []
    for policy in dict.fromkeys(row["policy"] for row in found):
        ends = [
            next(row for row in found if (row["policy"], row["model"]) == (policy, model))[measure] for model in models
        ]
        rows.append(
            (f"`{policy}`", *(f"{_three(e['mean'])} ({_three(e['within'])}, {_three(e['across'])})" for e in ends))
        )
    return _table(("policy", *(model.upper() for model in models)), rows)


def _three(value: float) -> str:
    """A number with about three digits."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


@table_of("satisfaction")
def _satisfaction(figures: Figures) -> list[str]:
    rows = [
        (
            row["users"],
            f"{row['wrong_runs']} of {row['runs']}",
            f"{row['wrong_certificates']:.3g}",
            f"{row['violations']:,.0f}",
        )
        for row in figures["satisfaction"]
    ]
    head = ("users", "runs with a wrong certificate", "wrong certificates a run", "violations a run")
    return _table(head, rows)


@table_of("forecast")
def _forecast(figures: Figures) -> list[str]:
    rows = [
        (LABELS[name], *("{:+,.0f} ({:+,.0f} to {:+,.0f})".format(*weeks[week]) for week in (0, -1)))
        for name, weeks in figures["forecast"].items()
    ]
    return _table(("policy", "extra clicks a day, week 1", "week 13"), rows)


REAL_PAGES = (
    "held-out", "regret", "violations", "minus-kl-ucb-br", "minus-safe-draw", "swaps", "swaps-other-half",
)  # fmt: skip
for _name in REAL_PAGES:
    table_of(f"real-pages-{_name}")(lambda figures, name=_name: figures["real_pages"][name])  # type: ignore[misc]


@table_of("demo")
def _demo(figures: Figures) -> list[str]:
    demo = figures["demo"]
    counts = [str(demo.get(name, 0)) for name in ("claims", "holds", "does not hold", "undecided")]
    return _table(("claims of the paper", "hold", "do not hold", "undecided"), [counts])


# --- first minutes, live ranker, logs ---


@table_of("first-runs")
def _first_runs(figures: Figures) -> list[str]:
    rows = []
    for name in dict.fromkeys(row["name"] for row in figures["first_runs"]):
        cold, warm = (_row(figures, "first_runs", name=name, again=again) for again in (False, True))
        rows.append((name, f"{cold['cpu_s']:.1f} s", f"{cold['memory_mb']:,.0f} MB", f"{warm['cpu_s']:.1f} s"))
    return _table(("", "first, processor time", "memory", "second, processor time"), rows)


@table_of("live")
def _live(figures: Figures) -> list[str]:
    rows = [
        (
            LABELS[row["policy"]],
            str(row["k"]),
            f"{row['mean_us']:,.0f} us",
            f"{row['p99_us']:,.0f} us",
            f"{row['saved_mb']:.2f} MB",
        )
        for row in figures["live"]
    ]
    return _table(("policy", "K", "rank and feedback, mean", "99 %", "saved state"), rows)


@table_of("logs")
def _logs(figures: Figures) -> list[str]:
    found = figures["logs"]
    numbers = [f"{found[name]:,.0f}" for name in ("megabytes", "count", "read")]
    return _table(("MB of the log", "count, MB/s", "read the pages of 100 queries, MB/s"), [numbers])


@table_of("imports")
def _imports(figures: Figures) -> list[str]:
    return _table(
        ("", "seconds"), [(f"`from saferank import {name}`", f"{s:.2f}") for name, s in figures["imports"].items()]
    )


# --- the service ---


POSTGRES_US, PAGE_BYTES, CLICKED = 30, 1060, 0.3
"""What a page costs PostgreSQL, and the share of pages with a report, of ``benchmarks/service/capacity.py``."""
BUSIEST, HALF_BUSY, DAY_SECONDS = 3, 0.5, 86_400


@table_of("capacity")
def _capacity(figures: Figures) -> list[str]:
    cost = figures["call_cost"]
    rank, report = cost["rank_us"], cost["feedback_us"]
    page = rank + CLICKED * report
    sum_of_costs = f"{rank:.0f} + {CLICKED} x {report:.0f} = {page:.0f} us of a server"
    rows = []
    for power in (6, 7, 8, 9):
        mean = 10**power / DAY_SECONDS
        cores, database = (BUSIEST * mean * micros / 1e6 for micros in (page, POSTGRES_US))
        processes = max(2, math.ceil(cores / HALF_BUSY))
        pages, disk = f"{mean:,.0f} / {BUSIEST * mean:,.0f}", f"{10**power * PAGE_BYTES / 1e9:,.0f} GB"
        rows.append((f"10^{power}", pages, f"{cores:.2f}", str(processes), f"{database:.3f}", disk))
    names = ("pages a day", "a second, mean / busiest", "cores of servers, busiest", "processes",
             "cores of PostgreSQL, busiest", "disk a day")  # fmt: skip
    said = f"A page is a rank call and {CLICKED} reports over HTTP: {sum_of_costs}, and {POSTGRES_US} us of PostgreSQL."
    return [said, "", *_table(names, rows)]


@table_of("call-cost")
def _call_cost(figures: Figures) -> list[str]:
    cost, rows = figures["call_cost"], []
    for name, label in (("rank", "rank"), ("feedback", "report, its commit and fold included")):
        own, echo = cost[f"{name}_us"], cost[f"echo_{name}_us"]
        rows.append((label, f"{own:.0f} us", f"{echo:.0f} us", f"{own / echo:.1f}"))
    return _table(("call", "processor time of the server", "bare echo of the same size", "multiple"), rows)


@table_of("call-walk")
def _call_walk(figures: Figures) -> list[str]:
    labels = {
        "rank": "a rank call", "report": "a report, written", "closing": "the closing that learns and publishes it",
        "click": "a click, from its report to being learnt",
    }  # fmt: skip
    walks = [(label, figures["call_walk"][name]) for name, label in labels.items()]
    rows = [(label, f"{one['modules']:g}", f"{one['calls']:g}", f"{one['us']:,.0f} us") for label, one in walks]
    return _table(("what is asked", "modules of saferank", "Python calls", "processor time"), rows)


@table_of("load")
def _load(figures: Figures) -> list[str]:
    rows = []
    for found in figures["load"].values():
        for name, phase in found["phases"].items():
            answers = [n for kind in phase["statuses"].values() for n in kind.values()]
            fine = [kind.get("200", 0) for kind in phase["statuses"].values()]
            rank, report = (
                _slashed(f"{phase[kind][point]:.1f}" for point in ("p50", "p99")) for kind in ("rank", "feedback")
            )
            cores = phase["server_cores"]["user"] + phase["server_cores"]["system"]
            asked = f"{phase['visitors_a_second']:,.0f} + {phase['visitors_a_second']:,.0f}"
            refused = f"{sum(answers) - sum(fine):,} of {sum(answers):,}"
            rows.append((name, asked, rank, report, refused, f"{cores:.2f}", f"{phase['memory_mb'][-1]:,.0f}"))
    head = ("phase", "calls a second", "rank, p50 / p99 in ms", "durable report, p50 / p99 in ms", "refused")
    return _table((*head, "cores of the server", "memory, MB"), rows)


@table_of("overload")
def _overload(figures: Figures) -> list[str]:
    found = figures["overload"]
    calm, storm, shares = found["capacity"], found["overload"], found["shares"]
    row = (
        f"{calm['a_second']:,.0f}",
        f"{storm['a_second']:,.0f} ({shares['a_second']:.0%})",
        f"{shares['a_processor_second']:.0%}",
        f"{found['refusal_cost']:.2f}",
        f"{storm['rank_p99_ms']:,.0f} ms",
        f"{storm['refused_p50_ms']:.1f} / {storm['refused_p99_ms']:.0f} ms",
    )
    head = ("capacity, calls a second", "answered at three times that", "the same by processor time of the server")
    return _table((*head, "cost of a refusal, an answer being 1", "rank, p99", "refusals, p50 / p99"), [row])


@table_of("replay")
def _replay(figures: Figures) -> list[str]:
    found = figures["replay"]
    rows = [
        ("size of the store", f"{found['store_mb']:,.0f} MB"),
        ("ready after a crash", f"{found['start_after_a_crash_s']:.1f} s"),
        ("ready after a stop", f"{found['start_after_a_stop_s']:.1f} s"),
        ("replay from the beginning", f"{found['replay_s']:.1f} s"),
    ]
    return _table((f"{found['pages']:,} pages", "processor time"), rows)


@table_of("faults")
def _faults(figures: Figures) -> list[str]:
    found = figures["faults"]
    columns = ("faults", "pages", "acknowledged", "late", "kill_switches")
    head = ("faults", "pages", "clicks acknowledged", "answered late", "kill switches that returned")
    row = [f"{found[name]:,}" for name in columns]
    return _table((*head, "lost", "counted twice", "explored pages after a kill switch"), [[*row, "0", "0", "0"]])


@table_of("broken-assumptions")
def _broken_assumptions(figures: Figures) -> list[str]:
    rows = [
        (
            row["what"],
            f"{row['as_it_comes']:.2f}",
            "no remedy" if row["by_the_service"] is None else f"{row['by_the_service']:.3f}",
        )
        for row in figures["broken_assumptions"]
    ]
    return _table(("what breaks it", "counted as it comes", "by the service"), rows)
