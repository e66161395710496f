# Thin words over the scripts in tools/. Needs Python >= 3.10 and, for the editors, Node >= 20.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)

ifeq ($(PYTHON),)
$(error Python 3.10 or newer was not found on PATH)
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-full bench rank-bench corpus corpus-fix fault-matrix gpu-check harden release-check vscode nvim lint format docs site clean

help:
	@echo "make demo       see ranksafe at work on examples/ (sets everything up)"
	@echo "make test       the gate: lint, types, contracts, unit, server and editor tests"
	@echo "make test-full  the gate and the long tests"
	@echo "make bench      speed, against ruff and pygls, in one run"
	@echo "make rank-bench the rank-safety benchmark, run and linted, with TorchFix, ruff and pylint"
	@echo "make corpus     every finding in pinned packages of others, and how many are right"
	@echo "make corpus-fix every safe fix, applied to copies of those packages and checked"
	@echo "make fault-matrix  programs that fail in one way each, run many times (TARGET=local REPETITIONS=50)"
	@echo "make gpu-check  the same programs on this machine's CUDA device and on a simulated one (RANKSAFE_TEST_TORCH_PYTHON=…)"
	@echo "make harden     attacks: hostile files, trees, workspaces and messages, and what they may cost (HOURS=0.5: random damage and sessions)"
	@echo "make release-check  build all that a release publishes, look into it, install it, start it"
	@echo "make vscode     install the extension into VS Code, Cursor or VSCodium, and open examples/ (EDITOR_COMMAND=cursor)"
	@echo "make nvim       open examples/ in Neovim with the server"
	@echo "make lint       ruff, mypy, import contracts"
	@echo "make format     format the Python code"
	@echo "make docs       write docs/rules.md and the JSON schema of the configuration again"
	@echo "make site       the documentation site, in both languages, into site/"
	@echo "make clean      remove what the set-up made in this folder"

demo:
	@$(PYTHON) tools/demo.py

test:
	@$(PYTHON) tools/gate.py

test-full:
	@$(PYTHON) tools/gate.py --full

bench:
	@$(PYTHON) tools/in_project.py tests/bench/bench.py

rank-bench:
	@$(PYTHON) tools/in_project.py -m tests.rank_bench.rank_bench --execute --peers

corpus:
	@RANKSAFE_TEST_TORCH_PYTHON="$${RANKSAFE_TEST_TORCH_PYTHON:-$$($(PYTHON) tools/environments.py torch)}" \
	$(PYTHON) tools/in_project.py -m tests.corpus.precision

corpus-fix:
	@RANKSAFE_TEST_TORCH_PYTHON="$${RANKSAFE_TEST_TORCH_PYTHON:-$$($(PYTHON) tools/environments.py torch)}" \
	$(PYTHON) tools/in_project.py -m tests.corpus.fixes

TARGET ?= local
REPETITIONS ?= 50

fault-matrix:
	@RANKSAFE_TEST_TORCH_PYTHON="$${RANKSAFE_TEST_TORCH_PYTHON:-$$($(PYTHON) tools/environments.py torch-run)}" \
	$(PYTHON) tools/in_project.py -m tests.fault_matrix.fault_matrix --target $(TARGET) --repetitions $(REPETITIONS)

gpu-check:
	@$(PYTHON) tools/in_project.py -m tests.gpu_check.gpu_check $(GPU_CHECK)

# With HOURS of processor time, random damage and sessions instead of the attacks; FUZZ and SEED to see something again.
harden:
	@$(PYTHON) tools/in_project.py $(if $(HOURS)$(FUZZ),-m tests.hardening.fuzzing $(HOURS)$(FUZZ) $(SEED),-m pytest tests/hardening -n auto)

release-check:
	@$(PYTHON) tools/release_check.py

vscode:
	@$(PYTHON) tools/open_editor.py vscode

nvim:
	@$(PYTHON) tools/open_editor.py nvim

lint:
	@$(PYTHON) tools/gate.py --only lint

format:
	@$(PYTHON) tools/in_project.py -m ruff check --fix-only --quiet .
	@$(PYTHON) tools/in_project.py -m ruff format .

docs:
	@$(PYTHON) tools/in_project.py tools/rule_pages.py
	@$(PYTHON) tools/in_project.py tools/configuration_schema.py

# Without --quiet, which hides the warnings from mkdocs' own count of them.
site:
	@for config in mkdocs.yml mkdocs.zh-cn.yml; do \
		NO_MKDOCS_2_WARNING=1 $(PYTHON) tools/in_project.py -m mkdocs build --config-file $$config || exit 1; done
	@echo "site/index.html"

clean:
	rm -rf .venv site node_modules dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
