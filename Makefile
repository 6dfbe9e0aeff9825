# The four commands: make run, make test, make check, make bench.
# Each sets up what it needs and does nothing again when nothing is missing.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.PHONY: all build test check fmt clippy doc deny setup clean

all: build

setup:            ## install what is missing (Debian packages when root, else says what to install)
	@scripts/setup

build: setup      ## build everything in release mode
	cargo build --release --workspace

test: setup       ## run every test there is
	cargo test --workspace

check: fmt clippy doc deny test   ## what continuous integration runs

fmt:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

deny:
	@command -v cargo-deny >/dev/null || cargo install cargo-deny --locked
	cargo deny --offline check bans licenses sources

clean:
	cargo clean
	rm -rf build
