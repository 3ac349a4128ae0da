"""Which tests run when: the one table of tiers.

``make test`` runs before every commit, ``make check`` in CI after it, ``make soak`` before a release. A test belongs to
``make test`` unless this table names it, it uses one of the fixtures below, or it carries a mark of its own. The
longest path that fits decides, so that a file may differ from its folder.
"""

from pathlib import PurePosixPath

TEST, CHECK, SOAK = "test", "check", "soak"

FIXTURES = {
    "chromium": CHECK,  # a real browser
    "postgres_process": CHECK,  # a real PostgreSQL, one cluster a session
    "postgres_address": CHECK,
}
"""What a test asks for decides its tier, wherever the test stands."""

PATHS = {
    "tests/acceptance": CHECK,  # real servers, kills, faults, attacks, seeds of the protocol
    "tests/acceptance/service/test_large_store.py": SOAK,  # a million pages
    "tests/acceptance/test_beyond_the_paper.py": SOAK,  # regret on real queries
    "tests/acceptance/test_figures_of_the_trial.py": SOAK,  # regret and violations on real queries
    "tests/acceptance/test_special_queries.py": SOAK,  # the paper's two special queries among the real ones
    "tests/checks/test_mistakes.py": CHECK,  # compiles a plug-in for every mistake
    "tests/checks/test_servable.py": CHECK,  # serves every policy
    "tests/cli/commands": CHECK,  # the command line in processes of its own
    "tests/client/test_docs.py": CHECK,  # the tutorial against a real server
    "tests/docs/test_notebooks.py": CHECK,  # each notebook in a process of its own
    "tests/docs/test_scale_out.py": CHECK,  # three servers on PostgreSQL, as the page says
    "tests/docs/test_site.py": CHECK,  # builds the site
    "tests/fitting/test_every_estimator.py": CHECK,  # statistics of planted users
    "tests/fitting/test_export.py": SOAK,  # planted users found in their log
    "tests/fitting/test_page_lengths.py": SOAK,  # a log of fifty items, end to end
    "tests/forecasting": CHECK,  # weeks of planted traffic
    "tests/policies/safe_draw/test_lifetime_compiled.py": CHECK,
    "tests/policies/safe_draw/test_lifetime_exact.py": CHECK,  # all cases again, interpreted, in a process of its own
    "tests/reporting/test_build.py": CHECK,  # a whole report with all its figures
    "tests/service/http/test_schemathesis.py": CHECK,  # hundreds of generated calls
    "tests/service/knowledge/test_scratch.py": CHECK,  # compiles bound and unbound kernels
    "tests/service/knowledge/test_sharing.py": CHECK,  # compiles every policy that is served
    "tests/service/test_demo.py": CHECK,  # a real server that simulates visitors for a minute
    "tests/simulation/cluster": CHECK,  # a Dask cluster of processes
    "tests/store/postgres": CHECK,
    "tests/test_packaging.py": CHECK,  # builds and installs the wheel
    "tests/test_plugin_sources.py": CHECK,  # compiles plug-ins in processes of their own
    "tests/test_plugins.py": CHECK,
}


def tier_of(path: str, fixtures: frozenset[str] = frozenset()) -> str:
    """The tier of a test in a file, given by its path from the root of the repository.

    >>> tier_of("tests/policies/test_registry.py")
    'test'
    >>> tier_of("tests/store/test_every_store.py", frozenset({"postgres_process"}))
    'check'
    """
    places = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    by_path = next((PATHS[place] for place in places if place in PATHS), TEST)
    by_fixture = {FIXTURES[name] for name in fixtures & FIXTURES.keys()}
    return max([by_path, *by_fixture], key=[TEST, CHECK, SOAK].index)
