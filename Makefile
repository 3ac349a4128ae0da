# One obvious command per intention. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
OUT ?= build/demo
REAL := ../shared/data/yandex60.json
STUDY := $(if $(wildcard $(REAL)),--study-instances $(REAL))

.PHONY: help demo test lint types unit bench docs soak coverage clean

help:           ## list these commands
	@grep -E '^[a-z]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

demo: .venv/.ready  ## the paper in small, from a synthetic click log to a report with figures and verdicts
	@$(BIN)/saferank reproduce --profile quick --overwrite $(STUDY) --out $(OUT)

test: lint types unit  ## everything that must pass: lint, types, all tests
	@echo "== all checks passed"

lint: .venv/.ready  ## style, imports between layers
	@echo "== lint: ruff, import-linter"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports

types: .venv/.ready  ## the type checker, strict
	@echo "== types: mypy --strict"
	@$(BIN)/mypy

unit: .venv/.ready  ## all tests; the first run compiles the kernels, which takes a minute or two
	@echo "== tests: pytest (the first run compiles the kernels)"
	@$(BIN)/pytest -q -n 2 --dist worksteal

soak: .venv/.ready  ## long acceptance runs: 10^9 rounds of the safe policies (needs ../shared); 200 kills, 10^6 pages, 5 minutes of load
	@SAFERANK_REPETITIONS=45 SAFERANK_KILLS=200 SAFERANK_IMPRESSIONS=1000000 $(BIN)/pytest -v -rP tests/acceptance
	@$(BIN)/python benchmarks/service_load.py --seconds 300 --json build/service-load.json --check

bench: .venv/.ready  ## nanoseconds a round, two jobs against one, a large catalogue, reading logs, fitting, the paper's profile, replay, the service under load
	@$(BIN)/saferank bench
	@$(BIN)/python benchmarks/large_catalogue.py
	@$(BIN)/python benchmarks/reading_logs.py
	@$(BIN)/python benchmarks/fitting.py
	@$(BIN)/python benchmarks/paper_profile.py
	@$(BIN)/python benchmarks/replay.py
	@$(BIN)/python benchmarks/equal_items.py
	@$(BIN)/python benchmarks/service_load.py

docs: .venv/.ready  ## write the generated pages of docs/ anew
	@$(BIN)/python docs/generate.py

coverage: .venv/.ready  ## line coverage with the kernels interpreted
	@NUMBA_DISABLE_JIT=1 $(BIN)/pytest -q -n 2 --ignore tests/acceptance --cov --cov-report=term-missing:skip-covered

clean:          ## remove what was built, the virtual environment included
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/.ready: pyproject.toml constraints.txt
	@echo "== set-up: a virtual environment in .venv (once; about a minute)"
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("saferank needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12" % v[:2])'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
