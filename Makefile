# The tasks of this project; `make` lists them. They need Linux, make, g++ 11 and Python 3.11, and
# say how to get what is missing. Everything is installed below this folder, into .venv, .venv-latest
# and build; only gpu installs the package into a Python of the machine.

VENV := .venv
LATEST := .venv-latest
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
EXTRAS := dev demo notebook bench aicpu
# What compiles the package, and is 0.1 GB; `make demo` has it for that time alone.
BUILD_TOOLS := cmake ninja scikit-build-core

NATIVE_SOURCES := CMakeLists.txt $(shell find xla_kernels -type f)
FORMATTED := $(shell find $(wildcard xla_kernels gpu/kernels gpu/script tests/kernels tests/aicpu_kernels \
  tests/extensions tests/faulty_kernels benchmarks examples) \
  -name '*.cc' -o -name '*.cpp' -o -name '*.cu' -o -name '*.h' -o -name '*.inc')

# Prints the project's dependencies and those of the extras named, a line each.
define PRINT_REQUIREMENTS
import sys, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
extras = project["optional-dependencies"]
print(*project["dependencies"], *(r for name in sys.argv[1:] for r in extras[name]), sep="\n")
endef
export PRINT_REQUIREMENTS

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export PIP_ROOT_USER_ACTION := ignore

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two installations into one environment would disturb each other.
.NOTPARALLEL:

# One process more than cores, as tests wait for processes of theirs; each needs a few GB.
IN_PARALLEL := --numprocesses $(shell expr $$(nproc) + 1) --maxprocesses 4 --dist worksteal

.PHONY: help setup demo test test-all test-latest bench docs notebooks wheels lint format gpu clean FORCE

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "PYTHON=... names the Python that .venv is made from, and that make gpu uses."
	@echo "ARGS=... is passed on to pytest, or to the script that a task runs."

setup: $(STAMPS)/requirements $(STAMPS)/package ## Check what is needed, make .venv, build the package into it

demo: $(STAMPS)/package ## Train a small network with a C++ activation, next to the same in plain JAX
	@echo "Running examples/digits.py."
	@$(BIN)/python examples/digits.py $(ARGS)

# XLA's optimiser takes a sixth of the time; tests of values turn it on, and those of test-all have it.
test: setup ## Run the tests
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(BIN)/python -m pytest $(IN_PARALLEL) -m "not slow" $(ARGS)

test-all: setup $(STAMPS)/docs ## Run the tests, the slow ones too
	$(BIN)/python -m pytest $(IN_PARALLEL) --hypothesis-profile new $(ARGS)

bench: setup ## Run the benchmarks, write benchmarks/results/README.md: all tables and plots
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: setup $(STAMPS)/docs ## Build the documentation site into build/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/docs
	@echo "Open build/docs/index.html"

notebooks: setup ## Run the notebooks and store their outputs in them
	$(BIN)/python notebooks/execute.py $(ARGS)

wheels: ## Build a manylinux wheel for each Python 3.11 to 3.13 that is there, into dist
	tools/make_wheels.sh dist $(ARGS)

lint: setup build/werror/stamp ## Check style, types and format; compile with warnings as errors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run -Werror $(FORMATTED)

format: setup ## Bring all sources into the format that lint wants
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(FORMATTED)

# Without isolation and without .venv: the machine has JAX with CUDA, and maybe no network.
gpu: ## Build against this machine's JAX with CUDA, run every GPU check, print the table
	@python=$$(tools/find_python.sh $(PYTHON)) \
	  || { echo "No Python 3.11 or newer; name one with PYTHON=..." >&2; exit 1; }; \
	set -ex; \
	"$$python" gpu/checks_device.py; \
	"$$python" -m pip install --quiet --no-build-isolation --no-deps --force-reinstall .; \
	"$$python" gpu/run_checks.py

# Here the module is built as users' is: in isolation, against the oldest jaxlib. This shows that it
# runs on the newest JAX.
test-latest: ## Run the tests on the newest Python and JAX, if a Python 3.12 or 3.13 is there
	@if python=$$(tools/find_python.sh python3.13 python3.12); then \
	  $(MAKE) --no-print-directory $(LATEST)/stamp LATEST_PYTHON="$$python" \
	  && $(LATEST)/bin/python -VV && $(LATEST)/bin/python -m pip list | grep jax \
	  && $(LATEST)/bin/python -m pytest $(IN_PARALLEL) -m "not slow" $(ARGS); \
	else \
	  echo "test-latest: skipped, there is no python3.13 or python3.12 on PATH or in pyenv"; \
	fi

clean: ## Remove all that these tasks made
	rm -rf $(VENV) $(LATEST) build dist docs/collected msops/include .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -f msops/_native*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@echo "Making $(VENV)."
	@python=$$(tools/check_prerequisites.sh $(PYTHON)) && "$$python" -m venv --clear $(VENV)
	@mkdir -p $(STAMPS)
	@touch $@

$(STAMPS)/demo: pyproject.toml | $(STAMPS)/venv
	@echo "Installing what the demo needs into $(VENV): a minute or two, 0.7 GB."
	@$(BIN)/python -c "$$PRINT_REQUIREMENTS" demo > $(STAMPS)/demo.txt
	@$(BIN)/python -m pip install --quiet --requirement $(STAMPS)/demo.txt
	@touch $@

$(STAMPS)/requirements: $(STAMPS)/demo
	@echo "Installing what the other tasks need into $(VENV): a minute or two, 0.9 GB more."
	@$(BIN)/python -c "$$PRINT_REQUIREMENTS" $(EXTRAS) > $(STAMPS)/requirements.txt
	@$(BIN)/python -m pip install --quiet --requirement $(STAMPS)/requirements.txt
	@touch $@

# Not among EXTRAS: only the site needs them.
$(STAMPS)/docs: pyproject.toml | $(STAMPS)/venv
	$(BIN)/python -c "$$PRINT_REQUIREMENTS" docs > $(STAMPS)/docs.txt
	$(BIN)/python -m pip install --quiet --requirement $(STAMPS)/docs.txt
	touch $@

# Editable: Python sources are used where they are; C++ ones need this again, and so does a list of
# Python files that changed, since the installation knows each file by its name. The module lies in
# the environment and comes before one that another build left in msops/.
$(STAMPS)/modules: | $(STAMPS)/venv
$(LATEST)/modules: | $(LATEST)/venv
$(STAMPS)/modules $(LATEST)/modules: FORCE
	@find msops -name '*.py' | LC_ALL=C sort > $@.new; cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(STAMPS)/package: $(NATIVE_SOURCES) $(STAMPS)/demo $(STAMPS)/modules
	@echo "Compiling the package's C++: a minute or two."
	@if [ ! -e $(STAMPS)/requirements ]; then \
	  $(BIN)/python -m pip install --quiet --target $(VENV)/tools $(BUILD_TOOLS); fi
	@PYTHONPATH=$(CURDIR)/$(VENV)/tools PATH="$(CURDIR)/$(VENV)/tools/bin:$$PATH" \
	  $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@rm -rf $(VENV)/tools
	@touch $@

build/werror/stamp: $(NATIVE_SOURCES) $(STAMPS)/requirements
	$(BIN)/cmake -S . -B build/werror -G Ninja -DMSOPS_WERROR=ON \
	  -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(BIN)/ninja" -DPython_EXECUTABLE="$(CURDIR)/$(BIN)/python" \
	  -Dpybind11_DIR="$$($(BIN)/python -m pybind11 --cmakedir)" --log-level=WARNING
	$(BIN)/cmake --build build/werror
	touch $@

$(LATEST)/venv:
	"$(LATEST_PYTHON)" -m venv --clear $(LATEST)
	touch $@

$(LATEST)/stamp: $(NATIVE_SOURCES) pyproject.toml $(LATEST)/modules | $(LATEST)/venv
	$(LATEST)/bin/python -c "$$PRINT_REQUIREMENTS" $(EXTRAS) > $(LATEST)/requirements.txt
	$(LATEST)/bin/python -m pip install --quiet --upgrade --requirement $(LATEST)/requirements.txt
	$(LATEST)/bin/python -m pip install --quiet --no-deps --editable .
	touch $@
