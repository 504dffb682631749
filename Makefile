# The front door: `make run` and `make test` do all the set-up from nothing. Meson does the work.

PREFIX  ?= /usr/local
BUILD   ?= build
ASAN    := build-asan
TIME    ?= 120
SHARE   ?= 1
RUNS    ?= 10000
MINUTES ?= 20
SUITES  ?= unit fuzz docs integration escape conformance
WERROR  := $(if $(CI),true,false)
SUDO    := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
STAMP    = .packages.stamp
# What another clone compiled is not compiled again: Meson calls ccache by itself where it is installed.
export CCACHE_BASEDIR   := $(CURDIR)
export CCACHE_NOHASHDIR := 1
meson    = meson setup -Dwerror=$(WERROR) -Dregistry="$$(tools/registry)"

all: $(BUILD)/build.ninja ## build everything into build/
	@ninja -C $(BUILD) -n | grep -q 'no work' || ninja -C $(BUILD)

run: all ## run examples/hello.js in a sandbox
	@$(BUILD)/jerboa run examples/hello.js

test: all ## everything a newcomer should see pass, in under ten minutes
	@tools/test $(BUILD) $(SUITES)

conformance: all ## the official suite of MCP, both requirement sets
	@tools/conformance $(BUILD)

test-full: $(ASAN)/build.ninja ## sanitizers, an ordinary user, chaos, docker, podman, linters, fuzzers with coverage, arm64, faults, speed, soak
	@ninja -C $(ASAN) -n | grep -q 'no work' || ninja -C $(ASAN)
	@tools/test $(ASAN) unit fuzz root user conformance
	@for of in packages packages-podman; do PACKAGES=tests/engines/$$of.txt tools/packages $(SUDO) || exit 1; done
	@$(MAKE) --no-print-directory all && tools/test $(BUILD) chaos docker remote chaos-docker podman-short chaos-podman
	@tools/lint
	@tools/fuzz 10
	@tools/cross $(SUDO)
	@$(MAKE) --no-print-directory faults SHARE=30
	@$(MAKE) --no-print-directory bench-short
	@tools/soak $(BUILD) 150 0.1

cross: $(STAMP) ## build for arm64 and run its unit tests under qemu
	@tools/cross $(SUDO)

guest: all ## cgroup v2 in an emulated Debian with systemd, as root and as a user: some minutes
	@PACKAGES=tests/guest/packages.txt tools/packages $(SUDO)
	@$(SUDO) tools/guest $(BUILD)

faults: all ## each system call of ours fails once, each in a run of its own: an hour or more; SHARE=N every N-th
	@$(SUDO) tools/faults $(BUILD) $(SHARE)

memcheck: all ## unit and integration tests under valgrind: hours
	@$(SUDO) tools/memcheck $(BUILD)

analyze: all ## gcc's analyzer over src
	@tools/analyze

bench: all ## Jerboa beside its peers, docker included, in one run: some minutes; ROUNDS=N
	@PACKAGES=bench/packages.txt tools/packages $(SUDO)
	@bench/run $(BUILD) $(ROUNDS)

test-docker: all ## every integration and escape test on the docker engine, with a daemon of our own, and its disasters; root
	@PACKAGES=tests/engines/packages.txt tools/packages $(SUDO)
	@$(SUDO) tools/test $(BUILD) docker remote chaos-docker

test-podman: all ## every integration and escape test on podman, in a place of its own, and some as an ordinary user, and its disasters; root
	@PACKAGES=tests/engines/packages-podman.txt tools/packages $(SUDO)
	@$(SUDO) tools/test $(BUILD) podman chaos-podman

bench-short: all ## a third of each bar, without peers: what CI demands
	@bench/run $(BUILD) short

bench-profile: all ## where the time of a run_js and of a cold start goes, by perf
	@PACKAGES=bench/packages.txt tools/packages $(SUDO)
	@bench/run $(BUILD) profile

bench-engines: all ## native, docker and podman beside each other: times and memory; root
	@for of in packages packages-podman; do PACKAGES=tests/engines/$$of.txt tools/packages $(SUDO) || exit 1; done
	@$(SUDO) bench/run $(BUILD) engines

bench-parts: all ## what single parts cost, as ratios within one run
	@bench/run $(BUILD) parts

chaos: all ## disasters under load: N=100 rounds (each disaster once), SEED=… replays; root
	@$(SUDO) env N=$(N) SEED=$(SEED) ONLY="$(ONLY)" ENGINE=$(ENGINE) TRACE=$(TRACE) tools/chaos $(BUILD)

soak: all ## does a server grow? 10,000 runs, 20 minutes of mixed load; RUNS=N, MINUTES=N
	@tools/soak $(BUILD) $(RUNS) $(MINUTES)

fuzz: $(STAMP) ## fuzz each target for TIME seconds
	@tools/fuzz $(TIME)

format: $(STAMP) ## lay the sources out as .clang-format says
	@clang-format -i $$(git ls-files '*.c' '*.h')

install: $(BUILD)/build.ninja ## install below PREFIX
	@meson configure $(BUILD) -Dprefix="$(abspath $(PREFIX))" # the programs look for each other there
	@ninja -C $(BUILD) --quiet
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --quiet --no-rebuild

clean: ## remove what was built; the store in ~/.cache/jerboa stays
	@rm -rf build build-asan build-fuzz build-arm64 build-arm64.sysroot $(BUILD).memcheck $(STAMP)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

$(STAMP): packages.txt
	@tools/packages $(SUDO)
	@touch $@

$(BUILD)/build.ninja: | $(STAMP)
	@$(meson) $(BUILD) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@mv $(BUILD).log $(BUILD)/setup.log

$(ASAN)/build.ninja: | $(STAMP)
	@$(meson) -Db_sanitize=address,undefined $(ASAN) > $(ASAN).log 2>&1 || { cat $(ASAN).log; exit 1; }
	@mv $(ASAN).log $(ASAN)/setup.log

.PHONY: all run test test-docker test-podman conformance test-full cross guest chaos soak faults memcheck analyze bench bench-short bench-profile bench-engines bench-parts fuzz format install clean help
