# Every target sets up what it needs by itself: Python 3.11 or later, pip and make are enough.
# The stamp is newer than pyproject.toml when there is nothing to set up.

PYTHON ?= python3
WORKERS ?= 2
MINUTES ?= 10
ITEMS ?= 20000
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# pip compiles what it installs; brokers that run from the checkout would otherwise compile it anew at every start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run demo check test bench bench-peers interop fuzz simulate mutants chaos upgrade test-spark-full programs

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with Tailrace and everything its tests need
	@echo "$(VENV) is ready"

run: $(READY) ## start three brokers, kill one, lose nothing, stay up until Ctrl-C
	@$(BIN)/tailrace demo --stay

demo: $(READY) ## the same, and stop them
	@$(BIN)/tailrace demo

check: $(READY) ## linters, types, layers, the ports rule, sizes and tidiness
	@$(BIN)/python -m checks

# worksteal: each worker begins with a run of neighbouring tests, so a module's broker is mostly started once,
# and whoever is done early takes over what is left of the other's.
test: $(READY) programs ## the whole suite, without the tests marked long
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 10

bench: $(READY) ## measure the broker beside the floor; exits 1 when a threshold is missed
	@$(BIN)/python -m benchmarks

bench-peers: $(READY) ## measure beside Apache Kafka, RabbitMQ and NATS, where they can be had
	@$(BIN)/python -m benchmarks.peers

interop: $(READY) programs ## every foreign client; those in Java, Go and Node where their toolchains are there
	@$(BIN)/python -m pytest tests/interop -n $(WORKERS) --dist worksteal -m "long or not long" --durations 10

fuzz: $(READY) ## 100,000 frames, most of them mutated valid ones, against Kafka's door; 200,000 hostile requests against each other one
	@$(BIN)/python -m tests.fuzz.run --frames 100000
	@$(BIN)/python -m tests.fuzz.dmqp --requests 200000
	@$(BIN)/python -m tests.fuzz.http --requests 200000
	@$(BIN)/python -m tests.fuzz.grpc --requests 200000

simulate: $(READY) ## 2,000 clusters under every fault, and 1,000 power cuts of one broker, in simulation
	@$(BIN)/python -m tests.simulation.campaign cluster --seeds 2000 --workers $(WORKERS)
	@$(BIN)/python -m tests.simulation.campaign power-cuts --cuts 1000 --workers $(WORKERS)

mutants: $(READY) ## plant bugs, and see the simulator find each of them within 200 seeds
	@$(BIN)/python -m tests.simulation.mutants --workers $(WORKERS)

# What the monkey does is shown as it happens; a storm may last longer than a test that hangs.
chaos: $(READY) ## kill, pause and cut off real brokers under load; MINUTES=10, SEED=any, ITEMS=20000
	@CHAOS_MINUTES=$(MINUTES) CHAOS_ITEMS=$(ITEMS) $(if $(SEED),CHAOS_SEED=$(SEED)) $(BIN)/python -m pytest tests/chaos -m chaos \
		-o log_cli=true -o log_cli_level=INFO -o log_cli_format="%(message)s" -o faulthandler_timeout=7200 -o timeout=0

upgrade: $(READY) ## upgrade clusters from 0.1.0 to this tree under load; needs the repository's history
	@$(BIN)/python -m pytest tests/upgrade -n $(WORKERS) --dist worksteal -m "long or not long" --durations 10

test-spark-full: $(READY) ## every test of the Spark pipeline, the long ones included
	@$(BIN)/python -m pytest tests/pipeline -n $(WORKERS) --dist worksteal -m "long or not long" --durations 10

# Debian splits ensurepip off its Python; the machine's own pip then puts one into the new environment.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Tailrace needs Python 3.11 or later; $(PYTHON) is older. Name another: make PYTHON=python3.12"; exit 1; }
	@echo "setting up $(VENV) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || \
		{ $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --editable ".[client,spark,postgres,report,http,grpc,dmqp]" --group dev
	@touch $@

# Programs that tests drive and PyPI does not have. Without them those tests skip, and say so.
programs:
	@command -v kcat >/dev/null || checks/install-debian kcat
