# SPDX-License-Identifier: BSD-3-Clause
# Tests in minimal Debian systems, made by debootstrap. Variables, for all three targets:
#   RELEASES="bookworm trixie"   the releases of Debian; all by default
#   NBAR_FRESH_DIR=DIR           keeps the bare systems in DIR, for the next run
# For check-fresh: DEMO_ONLY=1 runs only `make demo`, not `make check` and the builds with an MPI
# For check-versions: SUITES="gcc clang dpdk openmpi mpich verbs" selects suites; all by default

check-fresh: ## the README's commands in minimal Debian systems: needs root
	$(Q)testbed/deps.sh debootstrap
	$(Q)TEST_TIMEOUT=3600 testbed/run testbed/fresh/test-fresh.sh

check-packages: ## Debian packages: built, checked and used in minimal systems: needs root
	$(Q)testbed/deps.sh debootstrap
	$(Q)TEST_TIMEOUT=3600 testbed/run testbed/fresh/test-packages.sh

check-versions: ## suites with each release's MPIs, DPDK, rdma-core and compilers, in minimal systems: needs root
	$(Q)testbed/deps.sh debootstrap
	$(Q)testbed/fresh/test-versions.sh

.PHONY: check-fresh check-packages check-versions
