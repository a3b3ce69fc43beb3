# What a person needs: make demo, make test, make lint, make docs, make bench.
# Works on a fresh Debian 12 as root or with sudo, given git, make and a Rust toolchain.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Build products stay outside the clone.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/evenkeel-target
export PATH := $(HOME)/.cargo/bin:$(PATH)

NEXTEST_VERSION := 0.9.151
DENY_VERSION := 0.20.2
MDBOOK_VERSION := 0.5.4
DEB_VERSION := 3.8.0
RPM_VERSION := 0.21.1
SBOM_VERSION := 0.10.0
# Tools that are built from source: little is gained by making them fast, and minutes are lost.
INSTALL := cargo install --locked --config profile.release.opt-level=0
# More arguments for the programs run: make demo ARGS=--json, make test ARGS='-p evenkeel-op'.
ARGS ?=

# `capture --uprobes` is built if clang is there.
UPROBES := $(if $(shell command -v $${CLANG:-clang} 2>/dev/null),--features evenkeel-cli/uprobes)

# Where `make install` puts things, and what stands in front of that while it does.
export PREFIX ?= /usr/local
export DESTDIR ?=

.PHONY: help setup setup-demo setup-bench nextest deny build install portable queue-plugin packages test-packages \
    release demo test test-vm soak lint tidy docs bench

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

setup: ## Install the packages and servers that the tests need.
	testkit/setup tests

setup-demo:
	testkit/setup demo

setup-bench:
	testkit/setup bench

# What runs the tests, without what would bring it up to date; what knows the licenses.
nextest:
	@command -v cargo-nextest >/dev/null || \
	    $(INSTALL) --no-default-features --features default-no-update cargo-nextest@$(NEXTEST_VERSION)

deny:
	@command -v cargo-deny >/dev/null || $(INSTALL) --no-default-features cargo-deny@$(DENY_VERSION)

build: ## Build the program, and beside it the library that `evenkeel plugin install` puts into servers.
	cargo build --release --locked --package evenkeel-cli --package evenkeel-plugin-url --package evenkeel-pages $(UPROBES)

install: ## Put what `make build` built below PREFIX (/usr/local): program, man pages, completions, units.
	dist/install "$$CARGO_TARGET_DIR/release"

portable: ## Build the program for systems older than this one: glibc 2.17.
	dist/portable

packages: ## Build .deb and .rpm packages of that program, below the build's directory.
	@command -v cargo-deb >/dev/null || $(INSTALL) --no-default-features cargo-deb@$(DEB_VERSION)
	@command -v cargo-generate-rpm >/dev/null || $(INSTALL) cargo-generate-rpm@$(RPM_VERSION)
	dist/packages

test-packages: ## Install, use, upgrade and remove the packages of `make packages` in clean roots of Debian 12 and 13.
	dist/try-packages "$$CARGO_TARGET_DIR/packages" $(ARGS)

release: ## Check that this commit can be released, and lay out what is to be published.
	@command -v cargo-sbom >/dev/null || $(INSTALL) cargo-sbom@$(SBOM_VERSION)
	cargo xtask release $(ARGS)

queue-plugin: ## Build the queue engine for this machine's MariaDB, or the MySQL that MYSQLD names.
	cargo build --release --locked --package evenkeel-queue-engine
	@dist/queue-plugin

demo: setup-demo ## Back up, kill, restore and check a private server under load.
	cargo build --release --locked --package evenkeel-cli
	"$$CARGO_TARGET_DIR/release/evenkeel" demo $(ARGS)

test: setup nextest ## Run every test.
	testkit/in-memory cargo nextest run --locked --workspace $(ARGS)
	cargo test --locked --workspace --doc --quiet

test-vm: setup ## Run the tests that need LVM, in a virtual machine with a kernel of its own.
	cargo xtask machine $(ARGS)

soak: setup nextest ## Run the loops of the tests in full: hours. Goes on where it was interrupted; writes a record.
	cargo xtask soak $(ARGS)

lint: tidy deny ## Check format, clippy, dependencies and the rules of the house.
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo deny --locked check bans licenses sources

tidy:
	cargo xtask tidy

docs: ## Build the book, the man pages and the completions under target/.
	@command -v mdbook >/dev/null || $(INSTALL) mdbook@$(MDBOOK_VERSION)
	cargo pages reference
	cargo pages man --out "$$CARGO_TARGET_DIR/man"
	cargo pages completions --out "$$CARGO_TARGET_DIR/completions"
	mdbook build docs --dest-dir "$$CARGO_TARGET_DIR/book"

bench: setup-bench ## Measure against mariadb-backup, restic, innochecksum, cat | zstd, and ssh: hours.
	cargo build --release --locked --package evenkeel-cli --package evenkeel-bench-traffic
	for one in incremental full impact pause ssh store pitr mount check baseline recovery engine dump load import tpcc oltp queue; do \
	    PATH="$$CARGO_TARGET_DIR/release:$$PATH" benchmarks/$$one $(ARGS); \
	done
