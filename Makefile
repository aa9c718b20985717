# make demo           what TSIM does, on a long mixed-topic thread
# make test           lint, types and all tests
# make test-min       the plugins on the oldest versions that they support
# make bench          speed and memory, as ratios to the floor in the same run
# make bench-quality  the 128k benchmark on the cheap systems, with its report in docs/results
# make docs           the site, in site/
# make docs-serve     the site while you write
# make release-check  wheels and sdists, installed into a clean environment
# Each does its own set-up in .venv on the first call; the second is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := tsim-core langchain-tsim langgraph-tsim llama-index-tsim scale-qa
INSTALLED := $(foreach p,$(PACKAGES),$(if $(wildcard packages/$(p)/pyproject.toml),packages/$(p)))
SOURCES := conftest.py packages examples tests

.PHONY: demo test test-min lint types unit bench bench-quality docs docs-serve release-check clean help
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "TSIM needs Python 3.11 or newer; say which with make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	@touch $@

$(VENV)/core: $(VENV)/made packages/tsim-core/pyproject.toml
	$(BIN)/python -m pip install -q -e packages/tsim-core
	@touch $@

$(VENV)/dev: $(VENV)/core pyproject.toml $(foreach p,$(INSTALLED),$(p)/pyproject.toml)
	$(BIN)/python -m pip install -q --group dev $(foreach p,$(INSTALLED),-e $(p))
	@touch $@

demo: $(VENV)/core
	@$(BIN)/python examples/demo.py

test: lint types unit

lint: $(VENV)/dev
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

types: $(VENV)/dev
	$(BIN)/mypy

unit: $(VENV)/dev
	$(BIN)/pytest -q -n 2 --cov --cov-report=term

# The oldest versions live in environments of their own: LangChain 0.3, and the first 1.x with middleware.
MIN := packages/langchain-tsim/tests
test-min:
	for set in min-requirements min-requirements-agents; do \
		test -d .venv-$$set || $(PYTHON) -m venv .venv-$$set || exit 1; \
		.venv-$$set/bin/python -m pip install -q --upgrade pip || exit 1; \
		.venv-$$set/bin/python -m pip install -q -r $(MIN)/$$set.txt -e packages/tsim-core -e packages/langchain-tsim || exit 1; \
		.venv-$$set/bin/python -m pytest -q packages/langchain-tsim -W ignore::DeprecationWarning || exit 1; \
	done

bench: $(VENV)/dev
	@for part in benchmarks/*.py; do echo "== $$part"; $(BIN)/python $$part || exit 1; done

bench-quality: $(VENV)/dev
	$(BIN)/python benchmarks/quality/run.py

$(VENV)/docs: $(VENV)/dev
	$(BIN)/python -m pip install -q --group docs
	@touch $@

docs: $(VENV)/docs
	$(BIN)/python docs/pictures.py
	$(BIN)/mkdocs build --strict

docs-serve: $(VENV)/docs
	$(BIN)/mkdocs serve

release-check: $(VENV)/dev
	$(BIN)/python tests/release_check.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis site dist
