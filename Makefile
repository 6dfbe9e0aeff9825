# The commands: make run, make test, make check, make bench.
# Each sets up what it needs and does nothing again when nothing is missing.
SHELL := /bin/bash
# Scripts and recipes look for what was built in target/, wherever cargo was told to build.
unexport CARGO_TARGET_DIR
.DELETE_ON_ERROR:
.PHONY: all install uninstall build run test package packages check lints fmt clippy features doc docs deny setup linux linux-report bench bench-packets bench-sip conformance clean

all: build

setup:            ## install what is missing (Debian packages when root, else says what to install)
	@scripts/setup
	@fuzz/setup

build:            ## build everything in release mode
	@scripts/setup --build
	cargo build --release --workspace

install:          ## the command, the headers and the libraries, to PREFIX (/usr/local)
	@scripts/setup --build
	cargo build --release -p mullion-cli -p mullion-capi -p mullion-word
	@scripts/install --prefix $(or $(PREFIX),/usr/local)

uninstall:        ## take them away again
	@scripts/install --remove --prefix $(or $(PREFIX),/usr/local)

run:              ## the tour: a real library in a domain, hostile programs, what the wall costs
	@scripts/tour-build
	@scripts/tour

test: setup       ## run every test there is
	MULLION_TEST_WORKSPACE=1 cargo test --workspace
	scripts/model
	target/debug/conformance torture --levels O0,O2 --every 40
	target/debug/conformance torture --levels O1,O2 --every 32 --protections word-write,word-read-write
	target/debug/conformance csmith --levels O2 --count 5
	target/debug/conformance suites --quick
	target/debug/conformance crates --quick

package:          ## the crates as they are published, each built from its own package alone (asks the registry's index)
	@scripts/package

docs:             ## the pages of this tree as one site, build/docs/site, its links checked (installs mdBook by cargo)
	@scripts/docs

conformance: setup  ## foreign tests, whole: gcc's torture tests, 200 random programs, libraries' own tests (hours)
	cargo build --quiet --release -p mullion-cli -p mullion-conformance -p mullion-bench-word
	target/release/conformance suites
	target/release/conformance crates
	@mkdir -p build
	target/release/conformance csmith --levels O0,O1,O2,O3 --state build/csmith
	target/release/conformance libstdcxx --state build/libstdcxx.state
	target/release/conformance torture --state build/torture.state
	target/release/conformance torture --state build/torture-word.state --protections word-write,word-read-write

check: setup fmt  ## what continuous integration runs: the lints while the tests, which leave half a machine idle
	MULLION_TEST_WORKSPACE=1 cargo test --workspace --no-run
	@mkdir -p build; echo "the lints run meanwhile: build/lints.log"; \
	$(MAKE) --no-print-directory lints LINTS=target/lints > build/lints.log 2>&1 & lints=$$!; \
	$(MAKE) --no-print-directory test; tests=$$?; \
	wait $$lints || { cat build/lints.log; echo "make check: the lints failed (above)"; exit 1; }; exit $$tests

lints:            ## everything of `check` but the tests, in turn
	@$(MAKE) --no-print-directory clippy
	@$(MAKE) --no-print-directory features
	@$(MAKE) --no-print-directory packages
	@$(MAKE) --no-print-directory doc
	@$(MAKE) --no-print-directory deny

linux:            ## User-Mode Linux for hosts/linux, once, into the cache (12 minutes of two processors); says what is missing
	@cargo build --quiet --release -p mullion-linux
	@target/release/linux-walls kernel --if-possible

linux-report:     ## workloads on ext2 and over veth in User-Mode Linux, plain and walled by turns (some 25 minutes of a processor)
	@cargo build --quiet --release -p mullion-linux -p mullion-linux-wall
	@target/release/linux-walls report

bench:            ## what each wall costs, side by side (BENCH=--quick for a first look)
	@scripts/setup --build
	@scripts/setup-bench
	cargo build --release -p mullion-cli -p mullion-bench -p mullion-bench-word -p mullion-capi
	cargo run --quiet --release -p mullion-bench -- --json build/bench.json --html build/bench.html $(BENCH)

bench-packets:    ## what a packet costs by payload, wall beside wall: table, JSON, a page with plots
	@scripts/setup --build
	@scripts/setup-bench --wasmtime
	@mkdir -p build
	cargo build --release -p mullion-cli
	cargo bench --quiet -p mullion-packets --bench packets -- --json $(CURDIR)/build/packets.json --html $(CURDIR)/build/packets.html $(BENCH)

bench-sip: setup  ## processes and messages beside Linux and other channels: table, JSON, a page with the plot
	@mkdir -p build
	scripts/bench-domains $(CURDIR)/build/domains.json
	cargo bench --quiet -p mullion-sip --bench sip -- --json $(CURDIR)/build/sip.json --html $(CURDIR)/build/sip.html \
	    --rows $(CURDIR)/build/domains.json $(BENCH)
	cargo bench --quiet -p mullion-hip --bench macro -- --json $(CURDIR)/build/sip-macro.json --html $(CURDIR)/build/sip-macro.html $(BENCH)

# Where the lints build. Beside running tests it is a folder of their own, since a build keeps its folder locked.
LINTS ?= target

# Workspaces of their own: SIPs are built with a feature that hosts are not, the models with loom.
ASIDE := examples/sip crates/language/sip/model crates/window/runtime/model

fmt:
	cargo fmt --all --check
	@for place in $(ASIDE); do cargo fmt --all --check --manifest-path $$place/Cargo.toml || exit 1; done

clippy:
	CARGO_TARGET_DIR=$(LINTS) cargo clippy --quiet --workspace --all-targets -- -D warnings
	cargo clippy --quiet --manifest-path examples/sip/Cargo.toml --workspace --all-targets -- -D warnings

features:         ## the combinations of features that hosts may choose
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion-loader --no-default-features
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion --no-default-features
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion --no-default-features --features trust
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion --no-default-features --features debug-information
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion-symbols --no-default-features
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion-trust --no-default-features
	CARGO_TARGET_DIR=$(LINTS) cargo check --quiet -p mullion-word --no-default-features

packages:         ## that the crates which hosts need can be packaged, without building them
	@scripts/package --no-verify --offline --allow-dirty --quiet

doc:
	CARGO_TARGET_DIR=$(LINTS) RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

deny:
	@command -v cargo-deny >/dev/null || cargo install cargo-deny --locked
	cargo deny --offline check bans licenses sources

clean:
	cargo clean
	rm -rf build
