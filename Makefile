# `make demo` and `make test` set up .venv on first use; nothing else is needed.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
WORKERS ?= 2
# What tests, documents and site need; .github/workflows/ci.yml installs the same.
EXTRAS := dev,docs,trees,parquet,export,cluster,search,report,tensorboard,wandb,mlflow,transformers,datasets
# One thread per worker: the workers share the cores, and no number depends on how many there are.
ONE_THREAD := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test soak docs site reproduce bench lint types release clean

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/farshore demo
	@echo "to go on: source $(BIN)/activate"

test: lint types
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) -m 'not soak'

# Stress tests: slow tests, killed processes, damaged files, many domains.
soak: $(VENV)/installed
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m soak

# The generated pages and figures of docs/, and what its executed pages print: some minutes.
docs: $(VENV)/installed
	$(ONE_THREAD) $(BIN)/python -m reproduction.pages.write

# The documentation site, in build/site; every warning is an error.
site: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The runs behind docs/reproduction.md: make reproduce TABLE=rotated-mnist DEVICE=cuda
# With MISSING=yes, only those that reproduction/tables does not have yet.
TABLE ?= rotated-mnist
DEVICE ?= cpu
reproduce: $(VENV)/installed
	$(BIN)/python -m reproduction.run --table $(TABLE) --device $(DEVICE) $(if $(MISSING),--missing)

bench: $(VENV)/installed
	$(BIN)/python bench/step_cost.py
	$(BIN)/python bench/whole_run.py
	$(BIN)/python bench/growth.py

lint: $(VENV)/installed
	$(BIN)/ruff check src tests bench docs reproduction
	$(BIN)/ruff format --check src tests bench docs reproduction
	$(BIN)/lint-imports

types: $(VENV)/installed
	$(BIN)/mypy

# Wheel and source distribution in dist/, and what they do in an empty environment.
release:
	rm -rf dist build/release
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install --quiet build
	build/release/bin/python -m build
	for built in dist/*.whl dist/*.tar.gz; do tests/smoke.sh $$built $(PYTHON) constraints.txt; done

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
