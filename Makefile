# One obvious command per intention. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
OUT ?= build/demo
EXTRAS := report,pandas,cluster,service,postgres,traces
# Byte code is kept, whatever the environment says: tests start hundreds of processes, which would all compile every module.
export PYTHONDONTWRITEBYTECODE :=
REAL := ../shared/data/yandex60.json
STUDY := $(if $(wildcard $(REAL)),--study-instances $(REAL))

.PHONY: help demo test check lint types kernels unit bench figures pictures docs package lowest soak coverage clean

help:           ## list these commands
	@grep -E '^[a-z]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: .venv/.ready  ## the paper in small, from a synthetic click log to a report with figures and verdicts
	@$(BIN)/saferank reproduce --profile quick --overwrite $(STUDY) --out $(OUT)

test: .venv/.ready  ## before every commit: lint, types, and all tests that need nothing but this process (tests/tiers.py)
	@$(MAKE) --no-print-directory -j 2 --output-sync=target kernels lint types
	@$(MAKE) --no-print-directory unit
	@echo "== make test: all passed"

check: .venv/.ready kernels  ## in CI, after `make test`: PostgreSQL, browser, command line, wheel, site, notebooks, attacks, a kill, a fault
	@echo "== check: what needs other processes; a third worker works while two wait for servers"
	@$(BIN)/pytest -q -n 3 --dist worksteal --durations 15 --durations-min 5 -m check
	@echo "== make check: all passed"

lint: .venv/.ready  ## style, imports between layers
	@echo "== lint: ruff, import-linter"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

types: .venv/.ready  ## the type checker, strict
	@echo "== types: mypy --strict"
	@$(BIN)/mypy

kernels: .venv/.ready
	@echo "== kernels: compiled once for all tests and kept for later runs"
	@$(BIN)/saferank compile --for service --policies safe-draw,kl-ucb-br

unit: .venv/.ready  ## the tests of `make test` alone
	@echo "== tests: pytest"
	@$(BIN)/pytest -q -n 2 --dist worksteal --durations 15 --durations-min 5 -m 'not check and not soak'

soak: .venv/.ready  ## before a release, hours: loops of kills, faults and seeds, 10^9 rounds of the safe policies (needs ../shared), cold caches
	@$(BIN)/pytest -v -m soak
	@SAFERANK_REPETITIONS=45 SAFERANK_KILLS=200 SAFERANK_IMPRESSIONS=1000000 \
	 SAFERANK_SEEDS=1000000 SAFERANK_REAL_SEEDS=100000 SAFERANK_FAULTS=1000 SAFERANK_CRAFTED=20000 $(BIN)/pytest -v -rP tests/acceptance
	@$(BIN)/python benchmarks/service/service_load.py --seconds 300 --json build/service-load.json --check

bench: .venv/.ready  ## nanoseconds a round of every policy under every click model, and two jobs against one
	@$(BIN)/saferank bench

figures: .venv/.ready  ## everything that README and docs quote, measured on this commit, and their tables (needs ../shared); about 20 minutes
	@$(BIN)/python benchmarks/figures.py
	@$(BIN)/python docs/generate.py

pictures: .venv/.ready  ## the pictures of the documentation, from runs with fixed seeds and from what `make figures` measured; minutes
	@$(BIN)/python benchmarks/pictures.py

docs: .venv/.ready  ## the documentation site in build/site, strictly and without the network
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/site_pages.py
	@$(BIN)/zensical build --strict
	@echo "open build/site/index.html (search needs a server: $(BIN)/python -m http.server -d build/site)"

package: .venv/.ready  ## what a release has in dist/: wheels, sdists, browser script; checked, and the wheel installed with each extra
	@$(BIN)/python benchmarks/package/package_install.py

lowest:         ## tests with the lowest versions that pyproject.toml allows, in an environment of their own (TESTS=... for some)
	@$(PYTHON) -m venv .lowest && .lowest/bin/pip install -q --disable-pip-version-check uv
	@.lowest/bin/uv pip install -q --python .lowest/bin/python --resolution lowest-direct -e '.[$(EXTRAS)]' -e clients/python --group test
	@.lowest/bin/saferank compile --for service --policies safe-draw,kl-ucb-br
	@.lowest/bin/pytest -q -n 2 --dist worksteal -W default -m 'not check and not soak' $(TESTS)

coverage: .venv/.ready  ## line coverage with the kernels interpreted
	@NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -n 2 --ignore tests/acceptance --cov --cov-report=term-missing:skip-covered

clean:          ## remove what was built, the virtual environment included
	rm -rf .venv .lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/.ready: pyproject.toml clients/python/pyproject.toml constraints.txt
	@echo "== set-up: a virtual environment in .venv (once; about a minute)"
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("saferank needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12" % v[:2])'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install -q --no-compile --disable-pip-version-check -c constraints.txt pip
	@$(BIN)/pip install -q --no-compile -c constraints.txt -e '.[$(EXTRAS)]' -e clients/python --group dev
	@touch $@
