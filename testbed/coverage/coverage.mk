# SPDX-License-Identifier: BSD-3-Clause
# Lines and branches that the unit tests execute. The programs are built again, with --coverage and
# without optimisation.

GCOV_BUILD := build-gcov
GCOV_MAKE = $(MAKE) --no-print-directory BUILD=$(GCOV_BUILD) CFLAGS="-O0 -g0 --coverage" \
            LDFLAGS="--coverage -Wl,--wrap=_exit" FW_LTO=
# Test sources are not counted, and some tests compute much: so they are optimised, without
# coverage.
ifeq ($(BUILD),$(GCOV_BUILD))
CFLAGS_test += -O2 -fno-profile-arcs -fno-test-coverage
# Children of a test that end by _exit() count, too: see exit.c.
GCOV_EXIT := $(BUILD)/test/testbed/coverage/exit.o
$(UNIT_BIN): $(GCOV_EXIT)
OBJS += $(GCOV_EXIT)
endif
GCOV_BIN := $(UNIT_BIN:$(BUILD)/%=$(GCOV_BUILD)/%)

coverage: ## lines and branches that the unit tests execute, by folder; fails below testbed/coverage/floors
	+$(Q)$(GCOV_MAKE) $(GCOV_BIN)
	$(Q)BUILD=$(GCOV_BUILD) FLOORS=testbed/coverage/floors PROGRAMS="$(GCOV_BIN)" V="$(V)" \
		TEST_TIMEOUT=3000 testbed/run testbed/coverage/measure; \
		status=$$?; sed -n '/^# /p' $(GCOV_BUILD)/log/measure.log; exit $$status
.PHONY: coverage
