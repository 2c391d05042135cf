# What CI runs, people run. Needs GNU make and Python 3.11 or newer; everything else goes into .venv.
.POSIX:
.SUFFIXES:
.DEFAULT_GOAL := help

# The first interpreter that is new enough and can make a virtual environment. PYTHON=… overrides.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3; do \
    $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
    && { echo $$python; break; }; done)
WORKERS ?= 2
# Tests start hundreds of processes: where it is set, each of them would compile everything anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE
# How much `make fuzz-fabric` tries: hostile answers for each adapter and requests to the faces; what schemathesis makes up.
HOSTILE ?= 100000
EXAMPLES ?= 200
# Which mutants `make mutants` tries; all of them if none is named.
MUTANTS ?=

VENV := .venv
RUN := $(VENV)/bin/python
# Older pips take the pins for build isolation from the first variable, newer ones from the second.
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
    $(RUN) -m pip install --quiet
USER_STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
CLIENTS_STAMP := $(VENV)/.installed-clients
JUDGES_STAMP := $(VENV)/.installed-judges
ATTACKERS_STAMP := $(VENV)/.installed-attackers
DEV_GROUP := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")
CLIENTS_GROUP := $(subst "dev","clients",$(DEV_GROUP))
JUDGES_GROUP := $(subst "dev","judges",$(DEV_GROUP))
ATTACKERS_GROUP := $(subst "dev","attackers",$(DEV_GROUP))
SAY := printf '\n==> %s\n'
# Where Helm cannot be had the other tests are run without the chart's.
WITH_HELM := without=; tools/helm/build >/dev/null || { [ $$? -eq 75 ] || exit 1; without='--ignore-glob=*/test_chart*'; \
    echo '\#\#\# tests of the chart: NOT RUN, for the reason above'; }

.PHONY: help setup setup-dev demo test coverage check check-format check-lint check-types check-imports check-shape golden manifests proto bench bench-allocator bench-fabric bench-prepare bench-real bench-fleet bench-api oracle oracle-long torture mutants storm real real-long real-faults real-node image alerts guests clients judges fuzz fuzz-api fuzz-fabric changelog clean
# Steps share two cores and one screen; `make -k check` shows all that is wrong, not only the first.
.NOTPARALLEL:

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 \2/p' Makefile | while read -r make name words; do \
	    printf '  make %-15s %s\n' "$$name" "$$words"; done

setup: $(USER_STAMP) ## install jackfield into .venv, with CEL and what nodes need

setup-dev: $(DEV_STAMP) ## install what tests and checks need as well

demo: $(USER_STAMP) ## show a claim's life on a cluster and a fabric in memory
	@$(VENV)/bin/jackfield demo

test: $(DEV_STAMP) ## run all tests but the slow ones
	@$(SAY) 'tests'
	@$(RUN) -m pytest -n $(WORKERS) -q -m 'not slow' tests

coverage: $(DEV_STAMP) ## does every branch of the core have a test of its own? takes minutes
	@$(SAY) 'coverage of the core'
	@$(RUN) -m pytest -n $(WORKERS) -q tests/unit/core --cov=jackfield.core --cov-branch --cov-fail-under=100

check: check-format check-lint check-types check-imports check-shape ## all of the following five

check-format: $(DEV_STAMP) ## is every file formatted?
	@$(SAY) 'format'
	@$(RUN) -m ruff format --check .

check-lint: $(DEV_STAMP) ## ruff, all rules but a reasoned few
	@$(SAY) 'lint'
	@$(RUN) -m ruff check .

check-types: $(DEV_STAMP) ## mypy, strict, tests too
	@$(SAY) 'types'
	@$(RUN) -m mypy

check-imports: $(DEV_STAMP) ## the contracts between layers
	@$(SAY) 'imports'
	@$(VENV)/bin/lint-imports --no-logo

check-shape: $(DEV_STAMP) ## the repository's shape, contracts, documents
	@$(SAY) 'shape, contracts, documents'
	@$(RUN) -m pytest -q tests/test_tidy.py tests/test_contracts.py tests/test_docs.py

golden: $(DEV_STAMP) ## write golden files and generated documents anew; then read the diff
	@$(SAY) 'golden files'
	@$(RUN) -m pytest -q --update-golden tests/golden tests/test_docs.py tests/test_metrics.py tests/unit/driver/test_drivers_page.py tests/unit/chart/test_generated.py

manifests: $(DEV_STAMP) ## write deploy/jackfield.yaml anew from the chart, for those without Helm; needs Go
	@$(SAY) 'manifests for kubectl'
	@tools/helm/build >/dev/null
	@$(RUN) -m pytest -q --update-golden tests/real/test_chart.py -k manifests

proto: $(DEV_STAMP) ## generate the kubelet's messages anew from src/jackfield/_proto/*.proto
	@$(SAY) "the kubelet's messages"
	@$(RUN) -m grpc_tools.protoc -Isrc --python_out=src --pyi_out=src src/jackfield/_proto/*.proto

bench: $(DEV_STAMP) ## run every benchmark in bench/
	@set -e; set -- bench/[!_]*.py; \
	[ -e "$$1" ] || { echo 'There is no benchmark in bench/.' >&2; exit 1; }; \
	total=$$#; number=0; for script; do \
	    number=$$((number + 1)); $(SAY) "benchmark $$number of $$total: $$script"; PYTHONPATH=tests $(RUN) "$$script"; done

bench-allocator: $(DEV_STAMP) ## our allocator and Kubernetes' own on the same claims; needs Go for the latter
	@$(SAY) 'benchmark: bench/allocator.py'
	@$(RUN) bench/allocator.py

bench-fabric: $(DEV_STAMP) ## orders a second at the fabric manager, by each protocol and each adapter; two minutes
	@$(SAY) 'benchmark: bench/fabric_manager.py'
	@PYTHONPATH=tests $(RUN) bench/fabric_manager.py

bench-prepare: $(DEV_STAMP) ## what a node takes to prepare claims, to see a device, to start; two minutes
	@$(SAY) 'benchmark: bench/prepare.py'
	@$(RUN) bench/prepare.py

bench-real: $(DEV_STAMP) ## what it costs on a real control plane: about fifteen minutes; needs Go
	@$(SAY) 'benchmark: bench/real_cluster.py'
	@PYTHONPATH=tests $(RUN) bench/real_cluster.py

bench-fleet: $(DEV_STAMP) ## 5,000 nodes on a real control plane, beside 100: about twenty minutes; needs Go
	@$(SAY) 'benchmark: bench/real_fleet.py'
	@PYTHONPATH=tests $(RUN) bench/real_fleet.py

bench-api: $(DEV_STAMP) ## what `jackfield up` carries: 5,000 nodes, 100 watches, 500 writes a second
	@$(SAY) 'benchmark: bench/embedded_api.py'
	@$(RUN) bench/embedded_api.py

oracle: $(DEV_STAMP) ## 1,000 random cases through kube-scheduler's own code and ours; needs Go
	@$(SAY) 'oracle'
	@PYTHONPATH=tests $(RUN) -m oracle.run

oracle-long: $(DEV_STAMP) ## the same with 20,000 allocations and 20,000 selectors
	@$(SAY) 'oracle, the long form'
	@PYTHONPATH=tests $(RUN) -m oracle.run --allocations 20000 --expressions 20000

# As many seeds as are wanted, beginning where the commit says: each commit tries others.
SEEDS ?= 300
TROUBLES ?= 0
FIRST ?= $(shell printf '%d' 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1))

torture: $(DEV_STAMP) ## disasters over simulated clusters: SEEDS=300 new ones for each commit, FIRST=N begins elsewhere
	@$(SAY) 'torture'
	@$(VENV)/bin/jackfield torture --seeds $(SEEDS) --from $(FIRST) --troubles $(TROUBLES)

mutants: $(DEV_STAMP) ## do the checkers bite? every rule taken out of the code must be missed; hours. MUTANTS=... names some
	@$(SAY) 'mutants'
	@PYTHONPATH=tests $(RUN) -m mutants.run --workers $(WORKERS) $(MUTANTS)

storm: $(DEV_STAMP) ## 10,000 orders to fabric managers that fail and are killed, as is the operator; twenty minutes
	@$(SAY) 'a storm'
	@PYTHONPATH=tests $(RUN) -m storm.run --kind native --kind fsas-fm --only scaler --only operator --manager-lives 10 --operator-lives 60
	@$(SAY) 'other managers, each in a small one'
	@$(RUN) -m pytest -q -m slow tests/storm

real: $(DEV_STAMP) ## tests on a real Kubernetes control plane; needs Go, and ten minutes the first time
	@$(SAY) 'a real control plane'
	@tools/kube/build >/dev/null
	@$(WITH_HELM); $(RUN) -m pytest -n $(WORKERS) --dist loadfile -q -m 'not slow and not node' $$without tests/real

real-long: $(DEV_STAMP) ## those of them that take minutes, and then `make real-faults`
	@$(SAY) 'a real control plane, the long form'
	@tools/kube/build >/dev/null
	@$(RUN) -m pytest -q -m 'slow and not node' tests/real
	@$(REAL_FAULTS)

# How long things go wrong, and what draws them: another seed for each commit.
MINUTES ?= 10
SEED ?= $(FIRST)
REAL_FAULTS = $(SAY) 'real faults'; PYTHONPATH=tests $(RUN) -m real.faults.run --minutes $(MINUTES) --seed $(SEED)

real-faults: $(DEV_STAMP) ## MINUTES=10 of processes killed and lines cut on a real control plane; SEED=N draws them
	@tools/kube/build >/dev/null
	@$(REAL_FAULTS)

real-node: $(DEV_STAMP) ## pods on a real kubelet and containerd; needs Go, root and Debian
	@$(SAY) 'a real node'
	@tools/kube/node >/dev/null
	@tests=node; tools/image/build >/dev/null || { [ $$? -eq 75 ] || exit 1; tests='node and not image'; \
	    echo '### tests of the image: NOT RUN, for the reason above'; }; \
	$(WITH_HELM); $(RUN) -m pytest -q -m "$$tests" $$without tests/real

image: $(DEV_STAMP) ## assemble the image that Jackfield runs in, without a registry; needs Debian
	@$(SAY) 'an image'
	@tools/image/build

alerts: $(DEV_STAMP) ## Prometheus' own tool on alerts, dashboard and figures; needs Go, and three minutes the first time
	@$(SAY) 'alerts'
	@tools/prometheus/build >/dev/null
	@$(RUN) -m pytest -q tests/alerts

guests: $(DEV_STAMP) ## devices plugged into guests of QEMU; needs qemu-system-x86_64 and a Debian kernel
	@$(SAY) 'guests of QEMU'
	@tools/guest/build >/dev/null
	@$(RUN) -m pytest -q tests/guests

clients: $(CLIENTS_STAMP) ## other people's Python clients on the embedded API; installs 150 MB of them first
	@$(SAY) "other people's clients"
	@$(RUN) -m pytest -q -W default tests/clients

judges: $(JUDGES_STAMP) ## other people's Redfish clients and validators on our fabric manager; installs 30 MB of them first, needs curl
	@$(SAY) "other people's judges"
	@$(RUN) -m pytest -q -W default tests/judges

fuzz: $(DEV_STAMP) ## 100,000 spoilt lines through the machine interface
	@$(SAY) 'spoilt lines'
	@PYTHONPATH=tests $(RUN) -m oracle.fuzz

fuzz-api: $(DEV_STAMP) ## 100,000 spoilt calls to the embedded API, and 5,000 over its socket
	@$(SAY) 'spoilt calls'
	@PYTHONPATH=tests $(RUN) -m hostile.fuzz

fuzz-fabric: $(ATTACKERS_STAMP) ## 100,000 hostile answers for each fabric adapter, as many requests to the manager; an hour
	@$(SAY) 'hostile managers, hostile callers'
	@PYTHONPATH=tests $(RUN) -m hostile.fabrics.fuzz --lies $(HOSTILE) --requests $(HOSTILE)
	@$(SAY) 'schemathesis'
	@PYTHONPATH=tests $(RUN) -m hostile.fabrics.described --examples $(EXAMPLES)

changelog: ## move the fragments of changelog.d/ into CHANGELOG.md, under "Unreleased"
	@$(PYTHON) tools/changelog/gather.py .

clean: ## remove .venv, caches and builds
	rm -rf $(VENV) dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(USER_STAMP): pyproject.toml constraints.txt
	@[ -n "$(PYTHON)" ] || { echo 'Jackfield needs Python 3.11 or newer, with its venv module (on Debian and Ubuntu: apt install python3-venv).' >&2; \
	    echo 'None was found; name one: make PYTHON=/path/to/python3' >&2; exit 1; }
	@[ -x $(RUN) ] || { $(SAY) "virtual environment in $(VENV), by $(PYTHON)"; $(PYTHON) -m venv $(VENV); }
	@$(SAY) 'jackfield and what it needs'
	@$(PIP) --editable '.[cel,driver]'
	@touch $@

$(DEV_STAMP): $(USER_STAMP)
	@$(SAY) 'tools for tests and checks'
	@$(RUN) -c '$(DEV_GROUP)' >$(VENV)/dev-requirements.txt
	@$(PIP) --requirement $(VENV)/dev-requirements.txt
	@touch $@

$(CLIENTS_STAMP): $(DEV_STAMP)
	@$(SAY) "other people's clients of Kubernetes"
	@$(RUN) -c '$(CLIENTS_GROUP)' >$(VENV)/clients-requirements.txt
	@$(PIP) --requirement $(VENV)/clients-requirements.txt
	@touch $@

$(JUDGES_STAMP): $(DEV_STAMP)
	@$(SAY) "other people's clients and validators of Redfish"
	@$(RUN) -c '$(JUDGES_GROUP)' >$(VENV)/judges-requirements.txt
	@$(PIP) --requirement $(VENV)/judges-requirements.txt
	@touch $@

$(ATTACKERS_STAMP): $(DEV_STAMP)
	@$(SAY) "other people's attackers"
	@$(RUN) -c '$(ATTACKERS_GROUP)' >$(VENV)/attackers-requirements.txt
	@$(PIP) --requirement $(VENV)/attackers-requirements.txt
	@touch $@
