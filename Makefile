# Everything a newcomer or a machine needs.  `make help` lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2
TORCH := $(shell grep '^torch==' constraints.txt)
TORCH_BACKEND ?= cpu

.PHONY: help demo test test-slow test-all test-portable check timings docs docs-serve clean browser
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

demo: $(VENV)/use.stamp  ## train three models on a built-in corpus, audit two: runs/demo/report.html
	$(BIN)/steadygaze demo --out runs/demo

# Bytecode is written even if the environment says otherwise: the workers and the commands that tests start read it.
THREADS ?= 1
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=$(THREADS) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(VENV)/work.stamp browser  ## the tests, on two cores
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/ray.stamp browser  ## what `make test` leaves out: long trainings, the other pairs of values of each sweep
	$(PYTEST) -m "slow and not exhaustive"

test-all: $(VENV)/ray.stamp browser  ## all tests and every case of each sweep; property tests with 100 examples, not 40
	$(PYTEST) --hypothesis-profile=thorough

test-portable:  ## `make test` with the kernels of older processors, and with four threads
	ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem $(MAKE) test THREADS=4
	ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell $(MAKE) test

check: $(VENV)/work.stamp  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

TIMINGS = train_step technique_step recurrent explain_file erasure

timings: $(VENV)/work.stamp  ## timings, as ratios from one interleaved run each
	for name in $(TIMINGS); do echo "== $$name"; $(BIN)/python -m timings run $$name || exit 1; done

# The variable turns off a notice about other projects that Material prints.
MKDOCS = NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

docs: $(VENV)/work.stamp  ## the documentation site, in site/; a warning is an error
	$(MKDOCS) build --quiet --strict

docs-serve: $(VENV)/work.stamp  ## the same at http://127.0.0.1:8000, rebuilt on change
	$(MKDOCS) serve

clean:  ## remove what these commands made
	rm -rf $(VENV) runs dist build site .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "steadygaze needs Python 3.11 or newer; try: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# On Linux the default torch wheel depends on gigabytes of GPU packages.  Take the CPU build: from the wheels that pip is
# configured with, or else from PyTorch's own index, which uv knows.  TORCH_BACKEND=auto (or cu130, …) takes a GPU build.
$(VENV)/torch.stamp: constraints.txt | $(BIN)/python
	@$(PIP) install --quiet --constraint constraints.txt '$(TORCH)+$(TORCH_BACKEND)' 2>/dev/null || \
	{ $(PIP) install --quiet uv && $(BIN)/uv pip install --quiet --python $(BIN)/python --torch-backend=$(TORCH_BACKEND) --constraint constraints.txt '$(TORCH)'; } || \
	{ echo "No $(TORCH_BACKEND) build of $(TORCH) was found. Check the network, or set PIP_FIND_LINKS to a folder with its wheel."; exit 1; }
	@touch $@

$(VENV)/use.stamp: pyproject.toml $(VENV)/torch.stamp
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/work.stamp: pyproject.toml $(VENV)/torch.stamp
	$(PIP) install --quiet --constraint constraints.txt --editable '.[test,check,docs]'
	@touch $@ $(VENV)/use.stamp

$(VENV)/ray.stamp: $(VENV)/work.stamp  # three slow tests start clusters; without Ray they are skipped, saying so
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[scale]' && touch $@ || \
	echo "Ray could not be installed: its tests will be skipped"

browser:  # page tests want Chromium; without it they are skipped, saying so
	@command -v chromium chromium-browser google-chrome >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the page tests"; \
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes chromium; } >/dev/null 2>&1 || \
		echo "chromium could not be installed: page tests will be skipped"; \
	else echo "no chromium here: page tests will be skipped"; fi
