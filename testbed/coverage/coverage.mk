# SPDX-License-Identifier: BSD-3-Clause
# What the unit tests execute. The programs are built again, with --coverage and without optimisation.

GCOV_BUILD := build-gcov
GCOV_MAKE = $(MAKE) --no-print-directory BUILD=$(GCOV_BUILD) CFLAGS="-O0 -g0 --coverage" LDFLAGS=--coverage FW_LTO=
# The tests themselves are not counted, and some compute much.
ifeq ($(BUILD),$(GCOV_BUILD))
CFLAGS_test += -O2 -fno-profile-arcs -fno-test-coverage
endif
GCOV_BIN := $(UNIT_BIN:$(BUILD)/%=$(GCOV_BUILD)/%)

coverage: ## lines and branches that the unit tests execute, by folder; fails below testbed/coverage/floors
	+$(Q)$(GCOV_MAKE) $(GCOV_BIN)
	$(Q)testbed/coverage/run $(if $(V),-v) testbed/coverage/floors $(GCOV_BIN)
.PHONY: coverage
