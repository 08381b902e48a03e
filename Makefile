# Everything starts here: `make demo` and `make test` need Python 3.11+ and set up the rest themselves.

BIN := .venv/bin
PYTHON ?= python3

# Spark needs Java 17+: found, or installed where the user may, or named in a message.
WITH_JAVA = JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

# The tests start hundreds of processes, and each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test bench classes docs lint lock servers warm wheel clean

help:
	@echo "make demo   run sample feeds through a service and show its page"
	@echo "make test   check style, types and layers, then run all tests"
	@echo "make bench  run the slow tests, reproduce the papers' figures (JSON and PNG)"
	@echo "make docs   build the documentation as a site, in build/site"
	@echo "make setup  make .venv with all that is needed"
	@echo "make lint   check style, types and layers only"
	@echo "make lock   resolve the dependencies anew into requirements.lock"
	@echo "make wheel  build a wheel in dist/, to install with pip"
	@echo "make clean  remove .venv and all that was built"

setup: .venv/ready

# The stamp lives in the environment, so that they vanish together.
.venv/ready: requirements.lock pyproject.toml scripts/setup.sh
	@PYTHON="$(PYTHON)" scripts/setup.sh
	@touch $@

# Machine code of the matching loops is kept in the user's cache folder, for all clones; only what has changed is compiled.
warm: .venv/ready
	@$(BIN)/python -m tidings.cli.warm

# Before several JVMs start at once, of which each would archive Spark's classes.
classes: .venv/ready
	@$(WITH_JAVA) $(BIN)/python -m tidings.spark.class_archive

servers:
	@scripts/servers.sh

demo: .venv/ready
	@$(WITH_JAVA) $(BIN)/tidings demo

test:
	@$(MAKE) --no-print-directory --jobs=2 .venv/ready servers
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint warm classes
	@echo "== pytest"
	@$(WITH_JAVA) scripts/test.sh

bench: warm
	@$(WITH_JAVA) $(BIN)/pytest -q -m 'slow or hypothesis' --hypothesis-profile=thorough
	@$(WITH_JAVA) $(BIN)/python -m benchmarks

# The variable silences an advertisement of the theme.
docs: .venv/ready
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "build/site/index.html; to search in it, run: $(BIN)/mkdocs serve"

lint: .venv/ready
	@echo "== ruff check"
	@$(BIN)/ruff check .
	@echo "== ruff format"
	@$(BIN)/ruff format --check .
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== lint-imports"
	@$(BIN)/lint-imports

lock: .venv/ready
	@$(BIN)/python scripts/lock.py

# The build tool is in the lock, so nothing is fetched for it.
wheel: .venv/ready
	@$(BIN)/pip wheel -q --no-deps --no-build-isolation --wheel-dir dist .
	@ls dist/*.whl

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
