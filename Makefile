# make demo   set up and run a complete release of a made-up state
# make test   set up and run linters, type checker, import contracts and tests
# make slow   statistical tests; make explore   the tests with fresh examples
# make redteam [MINUTES=120] [SEED=1] [ONLY=attack:kind:seed]   attack random releases
# make bench  comparisons with peers; make docs   generated pages

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
MINUTES ?= 5
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint slow explore redteam bench docs clean

demo: $(STAMPS)/base
	$(BIN)/trellis demo

test: lint
	$(BIN)/pytest -n 2

lint: $(STAMPS)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

slow: $(STAMPS)/dev
	$(BIN)/pytest -m slow

explore: $(STAMPS)/dev
	$(BIN)/pytest -n 2 --hypothesis-profile explore

redteam: $(STAMPS)/dev
	PYTHONPATH=tests $(BIN)/python -m redteam --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only $(ONLY))

bench: $(STAMPS)/bench
	$(BIN)/python -m benchmarks

docs: $(STAMPS)/dev
	for page in docs/api/make_pages.py docs/pictures/*.py docs/reproductions/*.py; do $(BIN)/python "$$page" || exit 1; done

clean:
	rm -rf $(VENV) dist .hypothesis .pytest_cache .ruff_cache .import_linter_cache

$(STAMPS)/venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trellis needs Python 3.11 or newer; name one with make PYTHON=..")'
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/base: $(STAMPS)/venv requirements/base.txt requirements/build.txt pyproject.toml
	$(PIP) -r requirements/base.txt -r requirements/build.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(STAMPS)/dev: $(STAMPS)/base requirements/dev.txt requirements/sql.txt
	$(PIP) -r requirements/dev.txt -r requirements/sql.txt
	touch $@

$(STAMPS)/bench: $(STAMPS)/dev requirements/bench.txt
	$(PIP) -r requirements/bench.txt
	touch $@
