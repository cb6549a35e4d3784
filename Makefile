# Needs make and Python 3.11 or newer with pip; everything else goes to .venv.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt
# The tests start processes by the hundred, which keep the bytecode of the modules also where that is switched off.
export PYTHONDONTWRITEBYTECODE :=
# One arena for all threads of a process, Arrow in it, and large arrays given back at once: a process of tests stays smaller.
ALLOCATOR := ARROW_DEFAULT_MEMORY_POOL=system MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=4194304 MALLOC_TRIM_THRESHOLD_=4194304
# Each commit waits for the disk some milliseconds: the tests' homes, half a gigabyte, are in memory where there is plenty,
# if programs may run from there.
MEMORY := $(shell grep -q ' /dev/shm [^ ]* [^ ]*noexec' /proc/mounts 2>/dev/null || df -k /dev/shm 2>/dev/null | \
	awk 'NR == 2 && $$4 > 4194304 { print "TMPDIR=$${TMPDIR:-/dev/shm}" }')
PYTEST := $(MEMORY) $(ALLOCATOR) $(BIN)/python -m pytest --dist worksteal
# The slow tests wait for leases, servers and pages for half of their time: a third process for every two processors.
CORES := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
MORE := $(shell echo $$(( ($(CORES) * 3 + 1) / 2 )))
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs

.PHONY: help demo serve test test-slow test-all test-browser mutants audit check lint types imports docs-strict coverage docs
.PHONY: docs-serve sbom release images bench clean

help:
	@echo "make demo    train and query a classifier of docstrings, and compare it with scikit-learn's"
	@echo "make serve   run the service on http://127.0.0.1:8000 until Ctrl-C"
	@echo "make test    run the tests, one method of each kind (make test-slow: the rest; make test-all: both)"
	@echo "make test-browser  install what the dashboard's tests need as far as possible, and run them (also a part of test-all)"
	@echo "make mutants put one fault after the other into copies of the code, and check that the tests catch each"
	@echo "make check   formatting, lint, types, import rules, links and names of the documentation"
	@echo "make docs    build the documentation into site/ (make docs-serve: serve it with search while you write)"
	@echo "make coverage  run the tests, and report the lines that they never run"
	@echo "make audit   check pinned packages for known vulnerabilities; needs a network"
	@echo "make sbom    write build/sbom.json, a CycloneDX list of all pinned packages"
	@echo "make release build wheel, sdist, chart, documentation, SBOM and SHA256SUMS of the commit into dist/"
	@echo "make images build the images of client, server and worker (ENGINE=podman or buildah: with these instead of docker)"
	@echo "make bench   run the benchmarks (some install reference libraries, which need a C++ compiler)"
	@echo "make clean   remove .venv and the demonstration's data"

demo: $(VENV)/installed-run
	@$(BIN)/polymargin demo

serve: $(VENV)/installed-run
	@$(BIN)/polymargin up

test: $(VENV)/installed-dev
	$(PYTEST) --numprocesses auto -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/installed-dev
	$(PYTEST) --numprocesses $(MORE) -m slow $(PYTEST_ARGS)

test-all: test test-slow

test-browser: $(VENV)/installed-browser
	$(BIN)/python -m pytest -m slow tests/browser -rs $(PYTEST_ARGS)

mutants: $(VENV)/installed-dev
	$(BIN)/python tests/mutants.py

# Separate targets, so that two may run at a time: make --jobs 2 --output-sync check
check: lint types imports docs-strict

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m docs_site.style

types: $(VENV)/installed-dev
	$(BIN)/mypy

imports: $(VENV)/installed-dev
	$(BIN)/lint-imports

# Not --quiet: mkdocs would then drop its warnings before --strict counts them, and broken links would pass.
docs-strict: $(VENV)/installed-dev
	$(MKDOCS) build --strict

coverage: $(VENV)/installed-dev
	$(BIN)/python -m pytest --numprocesses auto --cov --cov-report=term --cov-report=html:build/coverage $(PYTEST_ARGS)

docs: docs-strict
	@echo "Open site/index.html; make docs-serve also has search"

docs-serve: $(VENV)/installed-dev
	$(MKDOCS) serve --strict --dev-addr 127.0.0.1:8001

sbom: $(VENV)/installed-dev
	@$(INSTALL) --editable ".[embedded,dev,docs,release]"
	@mkdir -p build
	@PYTHONWARNINGS=ignore $(BIN)/cyclonedx-py requirements constraints.txt --pyproject pyproject.toml --output-reproducible --short-PURLs \
	    --output-file build/sbom.json
	@echo "Wrote build/sbom.json"

release: $(VENV)/installed-dev
	@$(BIN)/python deploy/release.py check
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(MAKE) sbom docs-strict
	@$(BIN)/hadolint Dockerfile
	@$(BIN)/python deploy/release.py build

ENGINE ?= docker

images:
	@for target in client server worker; do \
	    $(ENGINE) build --target $$target --tag polymargin-$$target:$$(sed -n 's/^VERSION = "\(.*\)"/\1/p' app/version.py) . || exit 1; done

# Without a network nothing is known: the check says so and does not fail.
audit: $(VENV)/installed-dev
	@$(INSTALL) --editable ".[embedded,dev,docs,audit]" || echo "pip-audit could not be installed" >&2
	@$(BIN)/python tests/audit_dependencies.py

bench: $(VENV)/installed-bench
	for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python -m "benchmarks.$$(basename $$file .py)" || exit 1; done

clean:
	rm -rf $(VENV) var/demo site

# A stamp is written only when its installation has succeeded, and is older than its inputs when they change.
$(VENV)/installed-run: $(INPUTS) | $(BIN)/pip
	@test -e $(VENV)/installed-dev || echo "Installing Polymargin into $(VENV) (about 1 GB; this takes a minute or two)"
	@$(INSTALL) --editable ".[embedded]"
	@touch $@

$(VENV)/installed-dev: $(INPUTS) | $(BIN)/pip
	@echo "Installing Polymargin and its development tools into $(VENV)"
	@$(INSTALL) --editable ".[embedded,dev,docs]"
	@touch $(VENV)/installed-run $@

# Reports what cannot be installed, and its tests are skipped; chromium comes from the system and needs root.
$(VENV)/installed-browser: $(VENV)/installed-dev
	@$(INSTALL) --editable ".[browser]" || echo "playwright could not be installed: the browser tests are skipped" >&2
	@$(INSTALL) --editable ".[notebook]" || echo "nbclient could not be installed: the notebook test is skipped" >&2
	@command -v chromium google-chrome >/dev/null || apt-get install --yes --no-install-recommends chromium \
	>/dev/null 2>&1 || echo "chromium was not found, and apt-get could not install it: the browser tests are skipped" >&2
	@npm install --silent --no-save --prefix build/browser axe-core >/dev/null 2>&1 || \
	echo "npm could not install axe-core: its test is skipped" >&2
	@touch $@

$(VENV)/installed-bench: $(INPUTS) | $(BIN)/pip
	@echo "Installing Polymargin, its development tools and reference libraries into $(VENV)"
	@$(INSTALL) --editable ".[embedded,dev,docs,bench]"
	@touch $(VENV)/installed-run $(VENV)/installed-dev $@

# Debian's python3 has no ensurepip unless python3-venv is installed; then its own pip puts one into the environment.
$(BIN)/pip:
	@test -n "$(PYTHON)" || { echo "Polymargin needs Python 3.11 or newer; found no python3.13, python3.12, \
	python3.11 or python3. Give its path: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV) && \
	$(PYTHON) -m pip --python $(BIN)/python install --quiet --disable-pip-version-check --no-input pip; } || \
	{ rm -rf $(VENV); echo "$(PYTHON) cannot create a virtual environment: install python3-venv or python3-pip" >&2; exit 1; }
