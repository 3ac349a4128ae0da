"""``saferank simulate``, ``compare``, ``bench`` and ``policies``: options, one call of the library, tables."""

import inspect
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import saferank as library
from saferank.cli.terminal.errors import naming
from saferank.cli.terminal.options import (
    REQUIRED,
    AsJson,
    Plugins,
    asked,
    count,
    flag,
    follows,
    names_in,
    numbers_in,
    numbers_or_none_in,
    option,
    settings_in,
)


@follows(
    "saferank.experiments.simulate:simulate",
    instances=Annotated[
        str,
        typer.Argument(metavar="INSTANCES", help="Instance file (JSON), or the word `embedded` for the built-in set."),
    ],
    positions=Annotated[
        str | None, option("K", "How many items a page shows; several with commas between are all played.")
    ],
    repetitions=count("N", "Independent runs of every policy on every instance."),
    rule=Annotated[
        list[str] | None,
        option(
            "RULE",
            "Decision rule: paper:DELTA, anytime:ALPHA or budget:ALPHA; 1/T is one over --rounds. May be given several "
            "times: then all are played, each by the policies that take it.",
            "paper:1/T, for safe-draw anytime:1/T",
        ),
    ],
    checkpoints=Annotated[
        str | None,
        option(
            "ROUNDS",
            "Rounds at which results are written, like 10,100,1000.",
            "about 200, every power of ten among them",
        ),
    ],
    queries=count("N", "Only the first N queries (ids).", "all, 20 of the embedded"),
    lifetime=Annotated[
        str | None,
        option(
            "D",
            "Rounds of an epoch: evidence starts at zero in each, and a certificate holds until the end of the "
            "next one. For policies that certify; the others are played as they are. Several with commas between, "
            "`none` among them, are all played.",
            "certificates never end",
        ),
    ],
    settings=Annotated[
        list[str] | None,
        option(
            "POLICY.NAME=VALUES",
            "Values of a hyper-parameter of a policy, like bubble-rank.hidden_duels=true,false; all are played. "
            "May be given several times.",
            "as the policy has them",
            "--set",
        ),
    ],
    plugin=Plugins,
    out=(Annotated[Path, option("DIR", "Folder for the results.")], Path("saferank-results")),
)
def simulate(**given: Any) -> None:
    """Play policies against simulated users and measure regret and safety.

    Every policy plays every instance (a query with its items and the click model of its users) from the same original
    ranking, once per repetition, with independent random streams.

    **Example**: `saferank simulate --policies kl-ucb-br,bubble-rank --queries 5 --rounds 10000 --out out`

    **Your own instances**: `saferank instances --queries 5 --out mine.json`, then `saferank simulate mine.json`

    **A sweep**: `saferank simulate --policies kl-ucb-br --rule paper:1e-5 --rule anytime:1e-5 --positions 3,5` plays
    every combination; the rows are named by what differs. `saferank report` takes one combination, chosen by
    the same options.

    **A long run** keeps its finished parts. After Ctrl-C, a crash or a full disk, the same command with --resume
    continues it and gives the same results. A folder with results in it is never overwritten without --overwrite.

    **What comes out**: a table of final regret, violations and wrong certificates; DIR/results.json with means
    and standard errors at every checkpoint; DIR/runs.parquet with the single runs; DIR/regret.png with the curves.
    """
    given = asked(
        given, policies=names_in, positions=numbers_in, checkpoints=numbers_in, models=names_in,
        lifetime=numbers_or_none_in,
    )  # fmt: skip
    from saferank.checks.plugin import load_checked_plugins
    from saferank.cli.terminal.tables import show_results

    load_checked_plugins(given.pop("plugin") or ())
    with naming(instances=given["instances"], settings="--set"):
        settings = settings_in(given["settings"] or (), "--set")
        results = library.simulate(**given | {"settings": settings, "checkpoints": given["checkpoints"] or ()})
    show_results(results, given["out"])


@follows(
    "saferank.experiments.results:Results.compare_all",
    results=(
        Annotated[
            Path,
            typer.Argument(
                metavar="RESULTS", help="Folder of `saferank simulate` or `reproduce`, or its results.json."
            ),
        ],
        REQUIRED,
    ),
    policies=Annotated[str | None, option("NAMES", "Policies to compare, with commas between.", "all")],
    measure=option("NAME", "regret, violations, wrong_certificates, clicks_relative or worst_page, after all rounds."),
    as_json=Annotated[bool, flag("--json", "Print JSON, and nothing else, on stdout: by pair, by query, by policy.")],
    plot=Annotated[Path | None, option("FILE", "Draw every query as a point (PNG, SVG or PDF).", "no figure")],
)
def compare(results: Path, as_json: bool, plot: Path | None, **given: Any) -> None:
    """Compare policies that played the same queries against the same users.

    Differences are paired: in a repetition of a query every policy meets the same users. For each pair of policies and
    each click model: the mean difference with its standard error within queries (other random streams) and across
    queries (other queries), on how many queries the first is clearly better, not clearly different, or clearly worse,
    and Wilcoxon's signed-rank test over queries, its p-value also adjusted for the number of tests (Holm). For each
    policy quantiles over all runs, and the worst run.

    **Example**: `saferank compare out --policies kl-ucb-br,original --plot by-query.png`

    **What comes out**: two tables, and the figure if asked for; with --json the same as
    `{"pairs": [...], "by_query": [...], "tails": [...]}`.
    """
    from saferank.cli.terminal.tables import show
    from saferank.experiments.results import Results
    from saferank.experiments.sources import in_words

    loaded = Results.load(results)
    found = loaded.compare_all(**asked(given, policies=names_in))
    if as_json:
        typer.echo(json.dumps({**found.as_json(), "instances": loaded.provenance.get("instances")}, indent=1))
    else:
        show(found.table(), found.tail_table(), in_words(loaded.provenance))
    if plot is not None:
        typer.echo(found.plot().save(plot), err=as_json)


@follows(
    "saferank.experiments.bench:bench",
    as_json=AsJson,
    policies=Annotated[str | None, option("NAMES", "Policies to time, with commas between.", "all")],
    rounds=count("T", "Rounds of a lap; more is steadier."),
    plugin=Plugins,
)
def bench(as_json: bool, plugin: list[str] | None, **given: Any) -> None:
    """Time a round of every policy under every click model.

    Beside each policy runs a bare loop that only draws the clicks, in turn with it; machines differ, and the multiple
    of the bare loop is the number to compare. Every figure is the fastest of several laps over embedded queries.

    **Example**: `saferank bench --policies kl-ucb-br,top-rank --models pbm,cm`

    **What comes out**: nanoseconds a round, multiples of the bare loop, and how much faster two jobs are than
    one; with --json the same as `{"timings": [...], "speed_up": {...}}`.
    """
    from saferank.checks.plugin import load_checked_plugins
    from saferank.cli.terminal.tables import show_timings
    from saferank.experiments.bench import bench

    load_checked_plugins(plugin or ())
    found = bench(**asked(given, policies=names_in, models=names_in))
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=1))
    else:
        show_timings(found.timings, found.speed_up)


def policies(plugin: Plugins = None) -> None:
    """List the policies, click models and decision rules, each with a line about it.

    **Example**: `saferank policies --plugin my_policy.py`

    **What comes out**: the names that --policies, --models and --rule take, your plug-ins among them.
    """
    from saferank.cli.terminal.tables import show
    from saferank.click_models import CLICK_MODELS
    from saferank.plugins import load_plugins
    from saferank.policies import POLICIES
    from saferank.policies.registry import load_installed
    from saferank.statistics.decision import RULES
    from saferank.table import TextTable

    load_plugins(plugin or ())
    load_installed()
    known: dict[str, dict[str, object]] = {
        "policies": {name: sys.modules[kind.policy.__module__] for name, kind in POLICIES.items()},
        "click models": {name: sys.modules[kind.__module__] for name, kind in CLICK_MODELS.items()},
        "decision rules": {f"{name}:LEVEL": kind for name, kind in RULES.items()},
    }
    for title, named in known.items():
        rows = [[name, (inspect.getdoc(documented) or "").partition("\n")[0]] for name, documented in named.items()]
        show(TextTable(title, ["", ""], rows, names=2))
    show("The level 1/T is one over the number of rounds, for example paper:1/T.")
