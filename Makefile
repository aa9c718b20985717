# make demo   what TSIM does, on a long mixed-topic thread
# make test   lint, types and all tests
# Each does its own set-up in .venv on the first call; the second is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := tsim-core langchain-tsim langgraph-tsim llama-index-tsim scale-qa
INSTALLED := $(foreach p,$(PACKAGES),$(if $(wildcard packages/$(p)/pyproject.toml),packages/$(p)))
SOURCES := packages examples tests

.PHONY: demo test lint types unit bench clean help
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

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis site dist
