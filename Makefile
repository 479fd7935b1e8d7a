# `make` alone lists what there is.
PYTHON ?= python3
BIN := .venv/bin
WORKERS ?= 2
RUNS ?= 5
EXACT ?= 100000
REVIEWS ?= 100000
CHAOS ?= 3600
IMAGE ?= bayplan:0.1.0
E2E ?= tests/e2e
KAI ?=
KUEUE ?=
KYVERNO ?=
PARTS ?=

# Tests and demos start hundreds of Python processes: without bytecode, each compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint static check bench bench-cluster attack schedulers test-exact explore e2e browser monitoring image try-image base lock sbom docs release clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

PIP := -m pip install --quiet --disable-pip-version-check

.venv/.ready: pyproject.toml locks/dev.txt
	@echo "setting up .venv (pinned with hashes in locks/dev.txt) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python $(PIP) --require-hashes --requirement locks/dev.txt
	@$(BIN)/python $(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv-tools/.ready: locks/tools.txt
	@echo "setting up .venv-tools (pinned with hashes in locks/tools.txt) …"
	@$(PYTHON) -m venv .venv-tools
	@.venv-tools/bin/python $(PIP) --require-hashes --requirement locks/tools.txt
	@touch $@

demo: .venv/.ready ## the main job on this machine: certificates, webhook, reviews, plan, map
	@$(BIN)/bayplan demo

test: .venv/.ready static ## tests, type check, linters, import contracts
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

lint: static ## ruff, mypy --strict, names, import-linter
	@$(BIN)/python .ci/check-names planner webhook certs tests

# What no test does as well: the check of names is one of the tests.
static: .venv/.ready
	@$(BIN)/ruff format --check --quiet . || { echo "run: .venv/bin/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@report=$$($(BIN)/lint-imports 2>&1) || { echo "$$report"; exit 1; }

bench: .venv/.ready ## measure CEL and the planner, side by side with others in one run
	@$(BIN)/python tests/bench/interpreter.py
	@for file in tests/bench/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

bench-cluster: .venv/.ready ## pods by 1, 8 and 32 clients on a real control plane, and other engines (KYVERNO=DIR) beside
	@[ -n "$$KUBEBUILDER_ASSETS" ] || .ci/build-controlplane >/dev/null
	@$(BIN)/python -m tests.bench.cluster.run
	@KYVERNO=$(KYVERNO) $(BIN)/python -m tests.bench.cluster.side_by_side

attack: .venv/.ready ## attacks on a real control plane with three replicas, each with its bound (hours; REVIEWS=n CHAOS=seconds PARTS="noisy fuzz …")
	@[ -n "$$KUBEBUILDER_ASSETS" ] || .ci/build-controlplane >/dev/null
	@$(BIN)/python -m tests.attack.run --reviews $(REVIEWS) --chaos $(CHAOS) $(PARTS)

schedulers: .venv/.ready ## the real KAI and Kueue beside Bayplan, how each scenario ends (KAI=DIR KUEUE=DIR, their checkouts; hours); PARTS=kube-scheduler: random gangs on kube-scheduler, planned or not (minutes)
	@[ -n "$$KUBEBUILDER_ASSETS" ] || .ci/build-controlplane >/dev/null
	@KAI=$(KAI) KUEUE=$(KUEUE) $(BIN)/python -m tests.schedulers.run $(PARTS)

test-exact: .venv/.ready ## the planner against exhaustive search on EXACT random instances (100,000: 2 h of one core)
	@BAYPLAN_EXACT=$(EXACT) $(BIN)/python -m pytest -n $(WORKERS) tests/exact

explore: .venv/.ready ## properties and fuzz tests on new random examples, RUNS times over
	@for run in $$(seq $(RUNS)); do $(BIN)/python -m pytest -n $(WORKERS) -m hypothesis --hypothesis-profile=explore || exit 1; done

# The collector took a quarter of the API servers' CPU: their heaps are small, and grow while kinds are defined.
e2e: export GOGC ?= 300
e2e: .venv/.ready ## a real control plane (built once, with Go): apply, schedule, refuse, install
	@[ -n "$$KUBEBUILDER_ASSETS$$BAYPLAN_E2E_KUBECONFIG" ] || .ci/build-controlplane >/dev/null
	@BAYPLAN_E2E=1 $(BIN)/python -m pytest -n $(if $(BAYPLAN_E2E_KUBECONFIG),0,$(WORKERS)) --dist loadfile --no-loadscope-reorder $(E2E)

browser: .venv/.ready ## HTML report and live page in Chromium (installed by apt once): widths, themes, contrast, axe-core
	@BAYPLAN_BROWSER=$$(.ci/build-browser) || exit 1; export BAYPLAN_BROWSER; $(BIN)/python -m pytest tests/browser

monitoring: .venv/.ready ## the alerts and the dashboard, with Debian's Prometheus and promtool (fetched by apt once)
	@BAYPLAN_PROMETHEUS=$$(.ci/build-prometheus) || exit 1; export BAYPLAN_PROMETHEUS; $(BIN)/python -m pytest tests/monitoring

image: ## the container image, with docker, podman or buildah, whichever works here
	@for tool in docker podman buildah none; do $$tool info >/dev/null 2>&1 && break; done; \
	  [ $$tool != none ] || { echo "no image can be built: none of docker, podman, buildah works here"; exit 1; }; \
	  $$tool build --tag $(IMAGE) $(IMAGE_FLAGS) .

try-image: .venv/.ready ## the image's recipe on a Debian base, built by chroot and started (as root; buildah by apt once)
	@BAYPLAN_IMAGE=$${BAYPLAN_IMAGE:-$$(.ci/build-image)} || exit 1; export BAYPLAN_IMAGE; $(BIN)/python -m pytest tests/image

base: ## pin the image's base anew, by the digest that its tag has now
	@.ci/renew-base Dockerfile

lock: .venv-tools/.ready ## write locks/ anew: versions are kept, LOCK_FLAGS=--upgrade takes the newest
	@.ci/lock $(LOCK_FLAGS)

sbom: .venv-tools/.ready ## what the image installs, as CycloneDX: dist/bayplan.cdx.json
	@mkdir -p dist
	@.venv-tools/bin/cyclonedx-py requirements locks/image.txt --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/bayplan.cdx.json
	@echo dist/bayplan.cdx.json

docs: .venv-tools/.ready ## the pages as a site with search, in dist/site; a link to no page or heading fails
	@rm -rf dist/pages && mkdir -p dist/pages
	@git ls-files '*.md' LICENSE Dockerfile manifests overlays policies docs | tar c -T - | tar x -C dist/pages
	@.venv-tools/bin/zensical build --strict --clean

release: .venv/.ready sbom ## wheel, chart, image recipe, SBOM, checksums, provenance: dist/bayplan-VERSION (needs Go)
	@.ci/release

clean: ## remove the virtual environment and the caches
	rm -rf .venv .venv-tools dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
