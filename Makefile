# Everything a developer types. `make help` lists it; nothing needs to be installed by hand first.

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python tools/pip_install.py
# Dependencies are what was tested, byte for byte; the package itself has no hash, and brings none.
LOCKED := $(PIP) --require-hashes --no-deps
OURS := $(PIP) --no-deps --no-build-isolation --editable

# What the service needs, and what its tests need in addition: for `make lock`.
RUN_SET := .[mysql,nats,otel,postgresql]
TEST_SET := .[test]
# The tests of the pages use its copy of axe-core (MPL 2.0) alone, and not playwright.
AXE := --no-deps axe-playwright-python
DOCS_SET := .[docs]

# `make unit ARGS="-k lock -x"` hands ARGS to the command behind a single suite; SEED=2, SEED=day or
# SEED=random is what tests that draw lots begin with.
ARGS ?=
SEED ?= 1
SUITES := $(BIN)/python tools/suites.py
SUITE_NAMES := tests lint types floors unit conformance functional invariants cluster mutants chaos chaos-long counts pages stories-on-postgresql stories-on-mariadb postgresql mariadb coverage fuzz

.PHONY: help run test test-long bench bench-peers bench-scale heat ironic vm vm-arm conformance-api docs ui-shots faults states man lock clean $(SUITE_NAMES)

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp  ## Show simulated servers being deployed, and serve on; ONCE=1 stops when done
	@$(BIN)/bloomery demo $(if $(ONCE),--once) $(ARGS)

test: $(VENV)/test.stamp  ## Test each room, with a share of exhaustive cases; IN_TURN=1 adds a suite of `test-long`, by the seed
	@$(SUITES) --seed $(SEED) $(if $(IN_TURN),--in-turn)

test-long: $(VENV)/test.stamp build/openapi/made.stamp  ## Run all that does not fit into `test`, with every case and a new seed each time
	@$(SUITES) --nightly --seed random

tests: ## Run the tests of `make test` without style and types
lint: ## Check style, words and release notes
types: ## Check types with mypy
floors: ## Check that imports point down
unit: ## Test pure logic
conformance: ## Compare templates and answers with what the published Heat and Ironic gave
functional: ## Test the whole service in one process
invariants: ## Test what holds for every row of a table
cluster: ## Run a whole cluster in one process, seed by seed, and models of its locks
mutants: ## Show that the tests notice when a safeguard is switched off
chaos: ## Kill processes and servers, and cut connections, in the middle of work
chaos-long: ## Kill conductors over RabbitMQ for 600 seconds, or BLOOMERY_CHAOS_S; SEED=2 for another course
counts: ## Count statements and commits per operation
pages: ## Test the pages in headless Chromium
stories-on-postgresql: ## Run the stories of nodes on PostgreSQL, over JSON-RPC
stories-on-mariadb: ## Run the same on MariaDB, over a broker
postgresql: ## Test what is of the database on PostgreSQL, started for the purpose if none runs
mariadb: ## Test the same on MariaDB
coverage: ## Say which branches of templates, plans and graphs no test takes
fuzz: ## Throw bad input at the API and at templates; 1200 and 300 seconds of it, or BLOOMERY_FUZZ_S each
$(SUITE_NAMES): $(VENV)/test.stamp
	@$(SUITES) --seed $(SEED) $@ -- $(ARGS)

bench: $(VENV)/test.stamp  ## Measure against the targets, five interleaved runs
	@$(BIN)/python bench/run.py $(ARGS)

bench-peers: $(VENV)/test.stamp build/heat/made.stamp build/ironic/made.stamp  ## Measure beside the published Ironic and Heat, and write doc/reference/benchmarks.md
	@$(BIN)/python -m bench.peers

bench-scale: $(VENV)/test.stamp  ## Measure 100 to 10,000 simulated machines, ARGS=bar 13,500 BMCs, ARGS=100000 rows; write doc/reference/benchmarks.md
	@$(BIN)/python -m bench.scale $(ARGS)

build/openapi/made.stamp:
	@echo "installing a generator of clients into build/openapi"
	@rm -rf build/openapi && python3 -m venv build/openapi
	@build/openapi/bin/python -m pip -qq --no-input install openapi-python-client==0.29.1
	@touch $@

heat: $(VENV)/test.stamp build/heat/made.stamp  ## Ask the published Heat itself, beside ours, case by case; then run its own functional tests
	@$(BIN)/python -m tests.conformance.compare --heat build/heat/bin/python $(ARGS)
	@$(BIN)/python -m tests.conformance.compare_lives --heat build/heat/bin/python $(ARGS)
	@$(BIN)/python -m tests.conformance.adopt_stacks --heat build/heat/bin/python
	@$(BIN)/python -m tests.conformance.heat_suite --heat build/heat/bin/python

build/heat/made.stamp:
	@echo "installing the published Heat into build/heat"
	@rm -rf build/heat && python3 -m venv build/heat
	@build/heat/bin/python -m pip -qq --no-input install openstack-heat==27.0.1 psycopg2-binary==2.9.10 \
		heat-tempest-plugin==3.0.0 tempest==47.0.0 testscenarios==0.7.0 python-novaclient==18.13.1
	@touch $@

ironic: $(VENV)/test.stamp build/ironic/made.stamp  ## Ask the published Ironic itself, beside ours, request by request; then import its machines
	@$(BIN)/python -m tests.conformance.ironic.compare --ironic build/ironic/bin $(ARGS)
	@$(BIN)/python -m tests.conformance.ironic.move_in --ironic build/ironic/bin

build/ironic/made.stamp:
	@echo "installing the published Ironic into build/ironic"
	@rm -rf build/ironic && python3 -m venv build/ironic
	@build/ironic/bin/python -m pip -qq --no-input install ironic==39.0.0
	@touch $@

vm: $(VENV)/test.stamp build/vm/made.stamp  ## Deploy virtual machines with the published agent of Ironic; needs root and qemu
	@unshare --net --pid --fork --kill-child --mount-proc $(BIN)/python -m tests.vm.life $(ARGS)
	@$(if $(ARGS),,$(MAKE) --no-print-directory vm-arm)

build/vm/made.stamp: tests/vm/build.sh tests/vm/fetch.sh tests/vm/init
	@echo "building ramdisk, boot loader and image into build/vm"
	@PIP=$(BIN)/pip tests/vm/build.sh build/vm
	@touch $@

vm-arm: $(VENV)/test.stamp build/vm-arm/made.stamp  ## Boot a virtual machine of ARM64 from a CD and by iPXE; needs root and qemu
	@unshare --net --pid --fork --kill-child --mount-proc $(BIN)/python -m tests.vm.arm

build/vm-arm/made.stamp: tests/vm/build_arm.sh tests/vm/fetch.sh tests/vm/init_arm
	@echo "building kernel, ramdisk and boot loaders for ARM64 into build/vm-arm"
	@tests/vm/build_arm.sh build/vm-arm
	@touch $@

newcomer: $(VENV)/test.stamp build/newcomer/made.stamp  ## Do what README and a tutorial say in an empty Debian 12; needs root and debootstrap
	@unshare --mount --pid --fork --kill-child --mount-proc $(BIN)/python -m tests.newcomer.transcript

build/newcomer/made.stamp:
	@echo "installing an empty Debian 12 into build/newcomer/root"
	@rm -rf build/newcomer && mkdir -p build/newcomer
	@debootstrap --variant=minbase --include=python3,python3-venv,make,git,curl,ca-certificates \
		bookworm build/newcomer/root > build/newcomer/debootstrap.log
	@touch $@

conformance-api: $(VENV)/test.stamp build/clients/made.stamp  ## Run the published suites of openstacksdk and Tempest, and write doc/reference/conformance.md
	@$(BIN)/python -m tests.conformance.clients.suites --clients build/clients/bin/python $(ARGS)

build/clients/made.stamp:
	@echo "installing the published clients and their tests into build/clients"
	@rm -rf build/clients && python3 -m venv build/clients
	@build/clients/bin/python -m pip -qq --no-input install openstacksdk==4.22.0 oslotest==6.1.1 \
		testscenarios==0.7.0 tempest==47.0.0 ironic-tempest-plugin==3.2.0 metalsmith==2.5.0
	@touch $@

ui-shots: $(VENV)/test.stamp build/film/made.stamp  ## Take the pictures of the pages in doc/pictures, and film them, with simulated servers
	@$(BIN)/python -m tests.pages.shots $(ARGS)
	@$(if $(ARGS),,PYTHONPATH=build/film $(BIN)/python -m tests.pages.film doc/pictures/rack.webp)

build/film/made.stamp:
	@$(BIN)/python -m pip -qq --no-input install --target build/film pillow==13.0.0
	@touch $@

docs: $(VENV)/docs.stamp  ## Build the site of pages in build/docs/html; begin at index.html
	@$(BIN)/python tools/site.py

faults: $(VENV)/test.stamp  ## Try every fault of a BMC in every operation, and write doc/reference/bmc-faults.md
	@$(BIN)/python tools/bmc_faults.py

states: $(VENV)/test.stamp  ## Write doc/reference/states.md from the table of states
	@$(BIN)/python tools/states.py

man: $(VENV)/test.stamp  ## Write contrib/man/bloomery.1 from the commands
	@$(BIN)/python tools/man_page.py

FREEZE := build/lock/bin/python -m pip freeze --all --exclude bloomery --exclude pip --exclude wheel
HASHES := build/lock/bin/uv pip compile --quiet --universal --python-version 3.11.7 --no-deps \
	--generate-hashes --no-annotate --no-header

lock:  ## Choose the newest versions that fit setup.cfg and pin them, with their hashes
	@rm -rf build/lock && tools/make-venv build/lock
	@build/lock/bin/python -m pip -qq --no-input install --upgrade setuptools '$(RUN_SET)'
	@$(FREEZE) > build/lock/run
	@build/lock/bin/python -m pip -qq --no-input install '$(TEST_SET)' '$(DOCS_SET)'
	@build/lock/bin/python -m pip -qq --no-input install $(AXE)
	@$(FREEZE) | grep -vxFf build/lock/run > build/lock/test
	@build/lock/bin/python -m pip -qq --no-input install uv
	@{ echo '# What was tested of the service. Written by `make lock`, for pip install --require-hashes.'; \
	   $(HASHES) build/lock/run; } > requirements.lock
	@{ echo '# What its tests and pages need in addition. Written by `make lock`.'; \
	   $(HASHES) build/lock/test; } > requirements-test.lock
	@rm -rf build/lock

clean:  ## Remove what the other targets made, the virtual environment included
	@rm -rf $(VENV) build *.egg-info .hypothesis
	@find . -name __pycache__ -prune -exec rm -rf {} +

$(VENV)/made.stamp:
	@tools/make-venv $(VENV)
	@touch $@

# The package is built with the setuptools that is locked, not with one fetched for it.
$(VENV)/run.stamp: setup.cfg pyproject.toml requirements.lock | $(VENV)/made.stamp
	@echo "installing what the service needs into $(VENV)"
	@$(LOCKED) --requirement requirements.lock
	@$(OURS) .
	@touch $@

$(VENV)/docs.stamp: $(VENV)/run.stamp
	@echo "installing what builds the site of pages into $(VENV)"
	@$(LOCKED) --requirement requirements-test.lock
	@touch $@

$(VENV)/test.stamp: setup.cfg pyproject.toml requirements.lock requirements-test.lock | $(VENV)/made.stamp
	@echo "installing what the service and its tests need into $(VENV)"
	@$(LOCKED) --requirement requirements.lock --requirement requirements-test.lock
	@$(OURS) .
	@touch $(VENV)/run.stamp $@
