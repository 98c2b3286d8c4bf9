# Everything from a machine that has Python 3.11 and make: each target installs what it needs into .venv, once.
PYTHON ?= python3
BIN := .venv/bin
# What needs none of the heavy extras.
LIGHT_TESTS := tests/choosing tests/constraints tests/cost tests/display tests/gp tests/pandora tests/run tests/search tests/stages \
  tests/study tests/trials tests/cli tests/test_condition.py tests/test_optimizer.py tests/test_policy.py \
  tests/test_stopping.py tests/integrations/test_optuna*.py tests/integrations/test_sklearn*.py tests/integrations/test_tracking.py
TEST_TOOLS := hypothesis mpmath packaging pandas psutil pytest pytest-xdist
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-slow test-faults test-optuna4 test-floors test-newest check docs format bench paper clean

help:
	@echo "make demo    tune a neural network within 60 s of training, beside random search (demo-output/); two or three minutes"
	@echo "make test    run the tests        make test-slow  the ones that take minutes"
	@echo "make test-faults   change each message and exit code of the command line, and see a test fail; about an hour"
	@echo "make test-optuna4  what stands on Optuna, with Optuna 4.5; five minutes"
	@echo "make test-floors   the engine, with the oldest versions that it accepts; test-newest: with the newest there are"
	@echo "make check   format, lint, types, import direction, documentation    make format  mend the first two"
	@echo "make docs    the documentation site, in site/"
	@echo "make bench   speed, with its targets"
	@echo "make paper   figures and docs/paper.md from the results so far (python -m paper run ... makes them)"

demo: .venv/installed-demo
	$(BIN)/python examples/demo.py --out demo-output

test: .venv/installed-dev
	$(BIN)/python -m pytest -m "not slow" -n 3 --dist loadfile

test-slow: .venv/installed-dev .venv/installed-tracking
	$(BIN)/python -m pytest -m slow

test-faults: .venv/installed-dev
	$(BIN)/python tests/mutation_check.py

test-optuna4: .venv-optuna4/installed
	.venv-optuna4/bin/python -m pytest -m "not slow" -n 2 --dist loadfile tests/cli tests/report tests/study tests/integrations/test_optuna*.py tests/integrations/test_postgresql.py

# PYTHON=python3.13 make test-floors does it with another interpreter.
test-floors: .venv-floors/installed
	.venv-floors/bin/python -m pytest -m "not slow" -n 2 --dist loadfile $(LIGHT_TESTS)

test-newest: .venv-newest/installed
	.venv-newest/bin/python -m pytest -m "not slow" -n 2 --dist loadfile $(LIGHT_TESTS)

check: .venv/installed-dev docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/installed-dev
	$(BIN)/python benchmarks/bench_index.py
	$(BIN)/python benchmarks/bench_instalments.py
	$(BIN)/python benchmarks/bench_stages.py
	$(BIN)/python benchmarks/bench_pandora.py
	$(BIN)/python benchmarks/bench_suggest.py
	$(BIN)/python benchmarks/bench_botorch.py

paper: .venv/installed-dev
	$(BIN)/python -m paper figures
	$(BIN)/python -m paper table

clean:
	rm -rf .venv .venv-optuna4 .venv-floors .venv-newest demo-output site

.venv/bin/python:
	$(PYTHON) -m venv .venv

# A stamp per extra: reinstalled only when what is to be installed changes.
.venv/installed-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing pbgi[$*] into .venv ..."
	$(PIP) --editable ".[$*]"
	@touch $@

# The oldest Optuna that is supported, with every other version as pinned.
.venv-optuna4/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-optuna4
	grep -v "^optuna==" constraints.txt > .venv-optuna4/constraints.txt
	.venv-optuna4/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-optuna4/constraints.txt \
	  "optuna==4.5.0" --editable ".[plot,postgresql,sklearn]" $(TEST_TOOLS)
	@touch $@

# The oldest versions that pyproject.toml accepts; what these need in turn is as old as they ask for.
.venv-floors/installed: pyproject.toml tests/floors.py
	$(PYTHON) -m venv --clear .venv-floors
	$(PYTHON) tests/floors.py > .venv-floors/constraints.txt
	.venv-floors/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-floors/constraints.txt \
	  --editable ".[plot,postgresql,sklearn]" $(TEST_TOOLS)
	@touch $@

.venv-newest/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
	  --editable ".[plot,postgresql,sklearn]" $(TEST_TOOLS)
	@touch $@
