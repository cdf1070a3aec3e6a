# Everything a developer runs. `make` prints the list.
VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)
READY := $(VENV)/.selc-ready
# Options for pytest, as in: make test ARGS="-k cut -x"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup main test test-fast lint fmt types golden corpus native bench mutants lint-accuracy docs ci clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## create .venv with selc (editable) and the developers' tools

$(READY): pyproject.toml
	$(BASE_PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --editable '.[dev]'
	@touch $@

main: $(READY) ## the main job: compile the example selections and use them
	PATH="$(abspath $(BIN)):$$PATH" bash examples/main_job.sh

test: $(READY) ## all tests, on all cores
	$(PY) -m pytest -n auto $(ARGS)

test-fast: $(READY) ## the tests without the slow ones and without the engines
	$(PY) -m pytest -n auto -m 'not slow and not corpus' $(ARGS)

lint: $(READY) ## ruff (rules and format) and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

fmt: $(READY) ## format, and repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

golden: $(READY) ## rewrite the expected outputs; read the difference as a change of specification
	$(PY) -m pytest --update-golden -m 'not corpus' $(ARGS)

corpus: $(READY) ## fetch the two engines that the tests read as text (.corpus/)
	$(PY) scripts/corpus.py

native: $(READY) ## only the tests that build C
	$(PY) -m pytest -m native $(ARGS)

bench: $(READY) ## compile times and call costs on this machine
	$(PY) benchmarks/run.py

ablation: $(READY) ## what each part of the analysis is worth (docs/analysis.md); takes half an hour
	$(PY) benchmarks/ablation.py

# Selectors for `make mutants`, as in: make mutants FOLDERS="build/moe_selector"
FOLDERS ?= build/moe_selector
mutants: $(READY) ## how many mutants of certificates the checker finds
	$(PY) scripts/mutants.py $(FOLDERS)

bench-growth: $(READY) ## how compilation grows with the size of a selection
	$(PY) benchmarks/growth.py

bench-vra: $(READY) ## how legality is decided: 7,168 assignments of attention, all deployments, 10^12
	$(PY) benchmarks/vra.py

bench-brute: $(READY) ## compare legality with a brute-force judge (docs/analysis.md); some minutes
	$(PY) benchmarks/brute.py

lint-accuracy: $(READY) corpus ## recall and precision of `selc lint` on the engines (docs/lint-accuracy.md)
	$(PY) benchmarks/lint_accuracy.py

docs: $(READY) ## rewrite the generated pages
	$(PY) scripts/errors_page.py
	$(PY) scripts/rules_pages.py

ci: ## what the continuous integration runs
	.ci/run

clean: ## remove what was built (keeps .venv and .corpus)
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find selc codegen tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
