# Everything a person or CI does here. `make` alone lists the targets.
# Needed beforehand: Python 3.11 or newer with its venv module, and make. All else goes into .venv.

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/setup.done
COMPILED := $(VENV)/kernels.done
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup test check format pytest proto guarantees bench demo mutants pins clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-11s %s\n", $$1, $$2 }'

setup: $(STAMP) ## Fill .venv with the pinned libraries; does nothing when they have not changed

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || { python=$$(sh .ci/python "$(PYTHON)") && "$$python" -m venv $(VENV); }
	@echo "Filling $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --build-constraint constraints.txt \
		--group dev --editable '.[parquet]'
	@sh .ci/chromium
	@touch $(STAMP)

test: check pytest ## Run every check and every test (options: PYTEST_ARGS='--promise G-1', WORKERS=2)

check: setup ## Run the linters, the type checker, the import rules and the freshness of generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	$(BIN)/buf lint
	$(BIN)/python proto/generate.py --check

pytest: $(COMPILED)
	$(BIN)/python -m pytest --numprocesses $(WORKERS) $(PYTEST_ARGS)

$(COMPILED): $(STAMP) $(wildcard graphsvc/kernels/*.py) graphsvc/audit/shortest.py graphsvc/audit/bounds.py
	@echo "Compiling the kernels (half a minute) ..."
	@$(BIN)/python -m tests.compile_kernels
	@touch $(COMPILED)

format: setup ## Let ruff mend and format the Python files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proto: setup ## Make graphsvc/v1 anew from proto/
	$(BIN)/python proto/generate.py

guarantees: setup ## Make docs/guarantees.md and docs/guards.md anew from their sources
	$(BIN)/python -m tests.spec.guarantees
	$(BIN)/python -m tests.spec.ways

mutants: setup ## Break the code on purpose and see that its tests notice (option: PROMISE=G-1)
	$(BIN)/python -m tests.mutants $(if $(PROMISE),--promise $(PROMISE))

bench: $(COMPILED) ## Run the benchmarks with their peers; figures go to bench/results, and a page of them to docs/benchmarks.md
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --group bench
	@mkdir -p bench/results
	$(BIN)/python bench/bench_peers.py | tee bench/results/$$(date +%F)-peers.json
	$(BIN)/python bench/bench_growth.py | tee bench/results/$$(date +%F)-growth.json
	$(BIN)/python bench/bench_callers.py --agents 1000000 | tee bench/results/$$(date +%F)-callers.json
	$(BIN)/python bench/bench_search.py | tee bench/results/$$(date +%F)-search.json
	$(BIN)/python bench/bench_large.py | tee bench/results/$$(date +%F)-large.json
	$(BIN)/python bench/bench_dispatch.py | tee bench/results/$$(date +%F)-dispatch.json
	$(BIN)/python bench/bench_rpc.py | tee bench/results/$$(date +%F)-rpc.json
	$(BIN)/python bench/bench_pages.py | tee bench/results/$$(date +%F)-pages.json
	$(BIN)/python bench/report.py

demo: $(COMPILED) ## Start both processes, publish a catalogue, close a loop and show the warning
	$(BIN)/python examples/demo.py

pins: ## Resolve the libraries anew, within the ranges of pyproject.toml, and write constraints.txt
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	python=$$(sh .ci/python "$(PYTHON)") && "$$python" -m venv "$$scratch/venv" && \
	"$$scratch/venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --upgrade pip && \
	"$$scratch/venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --group dev --group bench '.[parquet]' && \
	{ echo "# Exact releases of everything that setup installs; made by: make pins"; \
	  "$$scratch/venv/bin/python" -m pip freeze --all --exclude loopwarden; } > "$$scratch/constraints.txt" && \
	cp "$$scratch/constraints.txt" constraints.txt && echo "constraints.txt: $$(grep -c == constraints.txt) releases"

clean: ## Remove .venv, caches and data of local runs
	rm -rf $(VENV) .data build dist .benchmarks .hypothesis .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
