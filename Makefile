# Everything from a bare clone, with Python 3.11 or later and make. `make demo` and `make test` set up what they need.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode of what is imported is written when it is imported: compiling all of it first takes most of a minute.
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --no-compile -c constraints.txt
# Processes that tests start import the package again and again: from bytecode, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# Files in the order that conftest.py gives: those that hardly search come first, while the searches are compiled, and
# those with many short tests (the doctests of src) last, to fill the gaps. Three processes on two cores: some tests
# wait, for a service, a browser or a process they started.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: help demo test tests check bench docs test-slow clean warm bytecode

help:
	@echo "make demo       explain a credit model's refusals and write demo-run/report.html"
	@echo "make test       all checks, and all tests but the slow ones"
	@echo "make check      ruff (check and format), mypy, import-linter"
	@echo "make bench      the speed targets, measured here"
	@echo "make test-slow  the other tests: more seeds, models and devices, load, kills by the hundred (CONTRIBUTING.md)"
	@echo "make docs       the documentation with all its examples run, into docs/_build"
	@echo "make clean      remove what the other targets made"

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; ok = (3, 11) <= sys.version_info[:2] < (3, 14); ok or sys.exit("fewest needs Python 3.11, 3.12 or 3.13; $(PYTHON) is %d.%d. Run: make PYTHON=python3.11 ..." % sys.version_info[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) -e ".[explore,runs]"
	@touch $@

$(VENV)/.test: $(VENV)/.core
	$(PIP) -e ".[test]"
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) -e ".[docs]"
	@touch $@

demo: $(VENV)/.core
	$(BIN)/fewest demo

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	nice $(BIN)/mypy
	$(BIN)/lint-imports

# Searches are compiled while the rest is installed and checked, and bytecode is written once before three processes need it.
# All but the compiling is nice: what needs a search that is not there yet would compile it again.
test:
	@$(MAKE) --no-print-directory -j3 check warm tests

warm: $(VENV)/.core
	@$(BIN)/fewest doctor --warm > $(VENV)/warm.txt || { cat $(VENV)/warm.txt; exit 1; }

bytecode: $(VENV)/.test
	@nice $(BIN)/python -m pytest --collect-only -q > $(VENV)/bytecode.txt || { cat $(VENV)/bytecode.txt; exit 1; }

tests: bytecode
	nice $(PYTEST) -m "not slow"

test-slow: $(VENV)/.test
	$(PYTEST) -m slow

# The larger tables are measured where FEWEST_DATA names their folder, e.g. make bench FEWEST_DATA=../shared/data
bench: $(VENV)/.test
	$(BIN)/fewest bench
	$(BIN)/python benchmarks/cold_start.py

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	$(BIN)/python scripts/check_links.py docs/_build

clean:
	rm -rf $(VENV) docs/_build docs/api docs/gallery docs/notebooks docs/made demo-run build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
