# SPDX-License-Identifier: BSD-3-Clause
# Tests in minimal Debian systems, made by debootstrap. Variables:
#   RELEASES="bookworm trixie"   releases of Debian; both by default
#   NBAR_FRESH_DIR=DIR           keeps the bare systems in DIR, for the next run
#   DEMO_ONLY=1                  check-fresh: only `make demo`, not `make check` and the rest
#   SUITES="gcc clang ..."       check-versions: only these suites (see test-versions.sh)

check-fresh: ## the README's commands in minimal Debian systems: needs root
	$(Q)testbed/deps.sh debootstrap
	$(Q)TEST_TIMEOUT=7200 testbed/run testbed/fresh/test-fresh.sh

check-packages: ## Debian packages: built, checked and used in minimal systems: needs root
	$(Q)testbed/deps.sh debootstrap
	$(Q)TEST_TIMEOUT=3600 testbed/run testbed/fresh/test-packages.sh

check-versions: ## suites with each release's MPIs, DPDK, rdma-core and compilers, in minimal systems: needs root
	$(Q)testbed/deps.sh debootstrap
	$(Q)testbed/fresh/test-versions.sh

.PHONY: check-fresh check-packages check-versions
