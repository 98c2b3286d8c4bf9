# Everything from a machine that has Python 3.11 and make: each target installs what it needs into .venv, once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo test test-slow test-faults check docs format bench paper clean

help:
	@echo "make demo    tune a neural network within 60 s of training, beside random search (demo-output/); two or three minutes"
	@echo "make test    run the tests        make test-slow  the ones that take minutes"
	@echo "make test-faults   change each message and exit code of the command line, and see a test fail; about an hour"
	@echo "make check   format, lint, types, import direction, documentation    make format  mend the first two"
	@echo "make docs    the documentation site, in site/"
	@echo "make bench   speed, with its targets"
	@echo "make paper   figures and docs/paper.md from the results so far (python -m paper run ... makes them)"

demo: .venv/installed-demo
	$(BIN)/python examples/demo.py --out demo-output

test: .venv/installed-dev
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: .venv/installed-dev
	$(BIN)/python -m pytest -m slow

test-faults: .venv/installed-dev
	$(BIN)/python tests/mutation_check.py

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
	$(BIN)/python benchmarks/bench_pandora.py
	$(BIN)/python benchmarks/bench_suggest.py
	$(BIN)/python benchmarks/bench_botorch.py

paper: .venv/installed-dev
	$(BIN)/python -m paper figures
	$(BIN)/python -m paper table

clean:
	rm -rf .venv demo-output site

.venv/bin/python:
	$(PYTHON) -m venv .venv

# A stamp per extra: reinstalled only when what is to be installed changes.
.venv/installed-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing pbgi[$*] into .venv ..."
	$(PIP) --editable ".[$*]"
	@touch $@
