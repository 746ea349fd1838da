# The two commands: `make run` and `make test`. The inner loop: `make check`.
CARGO ?= cargo
ARGS ?=
.PHONY: run test test-host check lint bench size fuzz captures deps test-deps bench-deps build aarch64 static reproducible install uninstall deb rpm tar image site

# Installs what is missing, builds, and diagnoses this host. Changes nothing on it.
run: build
	target/release/netwright doctor $(ARGS)

# What `netwright --version -v` names; "unknown" outside of a checkout.
build bench: export NETWRIGHT_COMMIT ?= $(shell scripts/commit)
build: deps
	$(CARGO) build --release --locked -p netwright

# Copies BINARY, the man pages, the completions and the licences below PREFIX; a package is staged
# by DESTDIR. `uninstall` removes the same files. Nothing else of the system is touched.
PREFIX ?= /usr/local
DESTDIR ?=
BINARY ?= target/release/netwright
TO = $(DESTDIR)$(PREFIX)
install:
	@[ -x "$(BINARY)" ] || { echo "there is no $(BINARY); run \`make build\` first" >&2; exit 1; }
	install -D -m 755 "$(BINARY)" "$(TO)/bin/netwright"
	@cd share && find . -type f | while read -r file; do \
	  install -D -m 644 "$$file" "$(TO)/share/$$file" || exit 1; done
	@install -d "$(TO)/share/doc/netwright"
	@install -m 644 LICENSE-MIT LICENSE-APACHE "$(TO)/share/doc/netwright"

uninstall:
	rm -f "$(TO)/bin/netwright"
	@cd share && find . -type f | while read -r file; do rm -f "$(TO)/share/$$file" || exit 1; done
	rm -rf "$(TO)/share/doc/netwright"

# A program for every x86-64 Linux, whatever its libraries, beside target/release: docs/install.md.
static: deps
	CARGO="$(CARGO)" scripts/static --release

# It fails where that program has more bytes than were measured on x86-64, and 3%: docs/decisions/0020-size.md.
SIZE_MOST ?= 19860000
size: static
	@bytes=$$(stat -c %s $(STATIC)); echo "$$bytes of at most $(SIZE_MOST) bytes"; test $$bytes -le $(SIZE_MOST)

# Builds that program twice, in folders of two names, and compares the bytes: docs/install.md.
reproducible: deps
	CARGO="$(CARGO)" scripts/reproducible

# The same program for aarch64 Linux, without need of any library there: docs/aarch64.md.
aarch64: deps
	CARGO="$(CARGO)" scripts/cross --release

# Packages of the static program, or of the one that BINARY names, below target/packages: docs/install.md.
STATIC = target/$(shell rustc -vV | sed -n 's/^host: //p')/release/netwright
deb rpm tar: deps $(if $(filter file,$(origin BINARY)),static)
	@scripts/need dpkg-deb:dpkg rpmbuild:rpm readelf:binutils python3:python3
	@scripts/package $@ $(if $(filter file,$(origin BINARY)),$(STATIC),$(BINARY))

# A container image of the same program, by podman, buildah or docker.
CONTAINER ?= $(firstword $(shell command -v podman buildah docker) buildah)
image: $(if $(filter file,$(origin BINARY)),static)
	@scripts/need $(notdir $(CONTAINER)):$(notdir $(CONTAINER))
	$(CONTAINER) build -f packaging/container/Containerfile -t netwright "$(dir $(if $(filter file,$(origin BINARY)),$(STATIC),$(BINARY)))"

# The docs as a website in target/site/book: pages, links and anchors are checked. Builds mdBook once.
site:
	@CARGO="$(CARGO)" scripts/site

# Rust comes with the machine; the C compiler builds the zstd library, clang the eBPF programs.
deps:
	@scripts/need cc:gcc make:make clang:clang

# What the suites compare us with, and what they run as real servers.
test-deps: deps
	@scripts/need ip:iproute2 tc:iproute2 ethtool:ethtool lspci:pciutils lscpu:util-linux \
	  lstopo-no-graphics:hwloc-nox zstd:zstd irqbalance:irqbalance \
	  ping:iputils-ping iperf3:iperf3 qperf:qperf setpriv:util-linux \
	  qemu-system-x86_64:qemu-system-x86 qemu-system-aarch64:qemu-system-arm \
	  busybox:busybox-static dpkg-deb:dpkg mkfs.ext4:e2fsprogs debugfs:e2fsprogs \
	  sysctl:procps ps:procps taskset:util-linux unshare:util-linux python3:python3 lintian:lintian rpmbuild:rpm buildah:buildah podman:podman runc:runc bpftrace:bpftrace ansible-playbook:ansible-core \
	  man:man-db groff:groff-base readelf:binutils bash:bash zsh:zsh fish:fish nginx:nginx-light redis-server:redis-server redis-cli:redis-tools perl:perl-base openssl:openssl chromium:chromium '/usr/lib/postgresql/*/bin/postgres:postgresql' \
	  udevadm:udev sshd:openssh-server ssh:openssh-client sudo:sudo patch:patch systemd-analyze:systemd tuned:tuned dbus-daemon:dbus-daemon prometheus:prometheus promtool:prometheus '/usr/lib/python3/dist-packages/yaml/__init__.py:python3-yaml' \
	  '/usr/lib/python3*/ensurepip/__init__.py:python3-venv'
	@scripts/duckdb
	@scripts/kubernetes
	@scripts/cyclonedx

# Every suite. Needs root: the suites make network namespaces of their own.
test: test-deps lint
	CARGO="$(CARGO)" scripts/cross
	CARGO="$(CARGO)" scripts/fuzz --check
	NETWRIGHT_FUZZ_SECONDS=60 scripts/suites --cargo "$(CARGO)"

# All but what boots a guest. Needs root.
test-host: test-deps lint
	scripts/suites --cargo "$(CARGO)" --tier host

# The fast inner loop, without root: style, unit tests, goldens, captured hosts, docs, import direction.
check: lint
	scripts/suites --cargo "$(CARGO)" --tier check

lint: deps
	@scripts/need codespell:codespell
	codespell
	$(CARGO) fmt --all --check
	$(CARGO) fetch --locked --quiet --manifest-path fuzz/Cargo.toml --target "$$(rustc -vV | sed -n 's/^host: //p')"
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	scripts/suites-selftest

# Speed, as ratios to a floor or a peer in the same run; ends with an error when one misses its
# target; `record` is what one sample costs by itself. ARGS belong to one of them:
# make bench BENCHES=traffic ARGS='--only stream'; its parts http and redis alone are BENCHES=http and BENCHES=redis. As root:
# BENCHES=explain holds explain's predictions against what is measured on slow wires, BENCHES=decompose
# its parts against known service times (docs/explain.md). BENCHES=prove counts how often prove is wrong,
# on made-up hosts and live (ARGS='--minutes 25'; docs/prove.md), BENCHES=watch what watching costs, BENCHES=fleet
# what 500 hosts cost a Prometheus and doctor, BENCHES=mesh what a host of a mesh costs among 1,000. neper is compared with where NEPER=path/to/tcp_rr says that it is; inspect_tree and watch compare with an
# older netwright where BEFORE=path/to/netwright says that it is.
BENCHES ?= inspect_tree record traffic
bench: bench-deps build
	@failed=0; for bench in $(BENCHES); do \
	  package=netwright only=; \
	  case $$bench in record) package=stats;; http|redis) only="--only $$bench"; bench=traffic;; \
	    fleet) $(CARGO) test -p netwright --release --locked --test seeing fleet::cost -- --ignored --nocapture || failed=1; continue;; \
	    mesh) $(CARGO) test -p netwright --release --locked --test measuring mesh::cost -- --ignored --nocapture || failed=1; continue;; \
	    prove) $(CARGO) test -p stats --release --locked --lib simulated -- --ignored --nocapture || failed=1;; esac; \
	  $(CARGO) bench -p $$package --locked --bench $$bench -- $$only $(ARGS) || failed=1; \
	done; exit $$failed

# What the benchmarks compare with; the bare loops in C are compiled as they run.
bench-deps: test-deps
	@scripts/need qperf:qperf sockperf:sockperf iperf3:iperf3 wrk:wrk redis-benchmark:redis-tools

# Every parser of the list under libFuzzer, FUZZ_SECONDS (10) each: docs/decisions/0011-fuzzing.md.
fuzz: deps
	CARGO="$(CARGO)" scripts/fuzz

# The captured hosts of crates/netwright/tests/captured again, from lab guests. Needs root.
captures: test-deps build
	scripts/capture-hosts target/release/netwright $(ARGS)
