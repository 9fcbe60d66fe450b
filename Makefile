# A short front for CMake. `make run` and `make test` do all the set-up on a Debian 12 machine.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
JOBS ?= $(shell nproc)
# A second clone on the same machine finds what the first has compiled.
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
# What is not in the cache is not preprocessed first: 4% of a build from nothing.
export CCACHE_DEPEND := 1

BUILD_PACKAGES := g++ cmake ninja-build pkg-config ccache libsystemc-dev libyaml-cpp-dev libboost-program-options-dev \
  libboost-context-dev libeigen3-dev nlohmann-json3-dev libfmt-dev libxxhash-dev zlib1g-dev libminizip-dev libpugixml-dev libsqlite3-dev libsqlitecpp-dev \
  libjemalloc-dev libmuparser-dev libpagmo-dev libkainjow-mustache-dev libprotobuf-dev protobuf-compiler node-d3
TEST_PACKAGES := libgtest-dev libgmock-dev librapidcheck-dev libvalijson-dev python3-torch doxygen clang-format lld gtkwave xvfb xauth slurm-wlm parallel chromium
LINT_PACKAGES := clang-tidy
DOC_PACKAGES := doxygen
PACKAGE_PACKAGES := dpkg-dev

# $(call install,PACKAGES): installs what is missing; needs root or sudo only then.
define install
missing=(); for package in $(1); do \
  dpkg-query -W -f='$${db:Status-Abbrev}' "$$package" 2>/dev/null | grep -q '^ii' || missing+=("$$package"); done; \
if [ $${#missing[@]} -gt 0 ]; then \
  root=(); [ "$$(id -u)" = 0 ] || root=(sudo); \
  export DEBIAN_FRONTEND=noninteractive; \
  "$${root[@]}" apt-get update -q; \
  "$${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$${missing[@]}"; fi
endef

# $(call stage,NAME,COMMAND): runs it and notes how long it took; `make test` ends with the list.
STAGES := build/stages.txt
define stage
@echo "== $(1)"; begin=$$(date +%s); $(2); \
mkdir -p build; printf '%-24s %5d s\n' '$(1)' $$(($$(date +%s) - begin)) >> $(STAGES)
endef

.NOTPARALLEL:
.PHONY: help run install package docs studies test packages test-packages tool-and-test-packages release dev asan test-release test-dev test-asan test-slow mutants mutate mutate-pipelines same-times new-stages format format-check lint lint-all clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

run: release ## install, build, and run a checked all_reduce on the default machine
	build/release/sc_main/kernbench run all_reduce -b 1K -e 1M -f 4
	@echo 'Next: add --report report.html to see where the time goes; build/release/sc_main/kernbench list; docs/look.md'

test: new-stages tool-and-test-packages format-check test-release test-asan same-times ## install, build, and run every test, plain and sanitized
	@echo "== all stages passed"; cat $(STAGES); awk '{s += $$(NF-1)} END {printf "%-24s %5d s\n", "total", s}' $(STAGES)
new-stages:
	@rm -f $(STAGES)

PREFIX ?= /usr/local
install: release ## the tool, its libraries and headers, presets, schemas, references, pages, man page: PREFIX=/usr/local
	cmake --build --preset release -j $(JOBS) --target kernbench_man
	cmake --install build/release --prefix $(PREFIX)
package: release ## the same as a Debian package: build/release/kernbench_*.deb
	@$(call install,$(PACKAGE_PACKAGES))
	cmake --build --preset release -j $(JOBS) --target kernbench_man
	cd build/release && cpack -G DEB

docs: ## reference of the public API: build/docs/html/index.html
	@$(call install,$(DOC_PACKAGES))
	mkdir -p build/docs
	doxygen docs/Doxyfile

studies: release ## run the shipped studies again: docs/studies/*/results.csv, tables, pictures
	docs/studies/update.sh build/release/sc_main/kernbench

packages: ## install what the build needs (Debian packages)
	$(call stage,packages of the build,$(call install,$(BUILD_PACKAGES)))
test-packages: packages ## install what the tests need as well
	$(call stage,packages of the tests,$(call install,$(TEST_PACKAGES)))

# What the tests need is fetched while the tool is compiled.
tool-and-test-packages: packages
	@[ -f build/release/CMakeCache.txt ] || cmake --preset release -DBUILD_TESTING=OFF
	$(call stage,tool and test packages,($(call install,$(TEST_PACKAGES))) > build/test_packages.log 2>&1 & packages=$$!; \
	cmake --build --preset release -j $(JOBS) --target kernbench; wait $$packages || { cat build/test_packages.log; exit 1; })

# Tests are built only where they are run: `make run` needs none of their packages.
release: packages ## the optimised tool: build/release/sc_main/kernbench
	@[ -f build/release/CMakeCache.txt ] || cmake --preset release -DBUILD_TESTING=OFF
	cmake --build --preset release -j $(JOBS) --target kernbench
dev: test-packages ## debug build with tests
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)

test-dev: dev ## tests of the debug build
	ctest --preset dev -j $(JOBS)
test-release: test-packages
	$(call stage,build,cmake --preset release -DBUILD_TESTING=ON && cmake --build --preset release -j $(JOBS))
	$(call stage,tests,ctest --preset release -j $(JOBS))
test-asan: test-packages
	$(call stage,build (sanitized),cmake --preset asan && cmake --build --preset asan -j $(JOBS))
	$(call stage,tests (sanitized),ctest --preset asan -j $(JOBS))
test-slow: test-packages ## complete products and sweeps of cases, hours: the label slow; random programs, sanitized
	cmake --preset release -DBUILD_TESTING=ON -DKERNBENCH_SLOW_TESTS=ON
	cmake --build --preset release -j $(JOBS)
	ctest --test-dir build/release -L '^slow$$' --output-on-failure -j $(JOBS)
	cmake --preset asan && cmake --build --preset asan -j $(JOBS) --target runtime_random_test
	ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=0 \
	  ctest --test-dir build/asan -R '^RandomPrograms\.Thousand$$' --output-on-failure
asan: test-asan ## tests under AddressSanitizer and UndefinedBehaviorSanitizer
MUTANTS ?=
mutants: test-packages ## faults made on purpose, which tests have to find: tests/mutants/README.md; MUTANTS='noc-*' for some
	JOBS=$(JOBS) tests/mutants/run.sh $(MUTANTS)
CASES ?= 100000
SEED ?= 1
mutate: test-packages ## wrong input of every kind: tests/mutate/README.md; CASES=100000 SEED=1
	cmake --preset release -DBUILD_TESTING=ON && cmake --build --preset release -j $(JOBS) --target mutate
	build/release/tests/mutate/mutate --source . --cases $(CASES) --seed $(SEED) --jobs $(JOBS)
mutate-pipelines: test-packages ## documents of pipelines changed by a seed, checked and run: docs/pipeline.md; CASES=100000
	cmake --preset release -DBUILD_TESTING=ON && cmake --build --preset release -j $(JOBS) --target pipeline_mutants_test
	KERNBENCH_PIPELINE_MUTANTS=$(CASES) KERNBENCH_PIPELINE_RUNS=$(CASES) build/release/tests/pipeline/pipeline_mutants_test
same-times: ## simulated times do not depend on the optimisation level (after test-release and test-asan)
	$(call stage,same times,tests/cli/same_times.sh build/release/sc_main/kernbench build/asan/sc_main/kernbench)

format: ## lay out all sources
	git ls-files '*.h' '*.cpp' | xargs clang-format -i
format-check:
	$(call stage,format,git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run -Werror)

LINT_BASE ?= HEAD
# It needs libtorch, which the build does not have.
NOT_LINTED := ':!tests/pipeline/libtorch_trial.cpp'
lint: ## clang-tidy over the sources changed since LINT_BASE (default: what is not committed)
	@$(call install,$(LINT_PACKAGES))
	cmake --preset dev > /dev/null
	git diff --name-only --diff-filter=d $(LINT_BASE) -- '*.cpp' $(NOT_LINTED) | xargs -r -P $(JOBS) -n 1 clang-tidy -quiet --extra-arg=-Wno-ignored-optimization-argument -p build/dev
lint-all: ## clang-tidy over all sources
	@$(call install,$(LINT_PACKAGES))
	cmake --preset dev > /dev/null
	git ls-files '*.cpp' $(NOT_LINTED) | xargs -P $(JOBS) -n 1 clang-tidy -quiet --extra-arg=-Wno-ignored-optimization-argument -p build/dev

clean:
	rm -rf build
