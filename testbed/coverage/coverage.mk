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

# What tests on test hosts and in guests execute. Their programs are optimised as users have them, but not linked with
# LTO. The counts of all counted-... add up; after a change of the sources: make clean.
HOSTS_GCOV := build-gcov-hosts
GUESTS_GCOV := build-gcov-guests
HOSTS_MAKE = NBAR_GCOV=$(CURDIR)/$(GUESTS_GCOV) $(MAKE) --no-print-directory BUILD=$(HOSTS_GCOV) \
             CFLAGS="-O2 -g0 --coverage" LDFLAGS=--coverage FW_LTO=

counted-%:
	$(Q)mkdir -p $(GUESTS_GCOV)
	+$(Q)$(HOSTS_MAKE) $*

WIRE_SRC = $(wildcard testbed/unit/wire/test_*.c testbed/unit/glue/test_*.c testbed/unit/platform/test_hostnic*.c)
WIRE_TESTS = $(patsubst %.c,$(BUILD)/%,$(notdir $(WIRE_SRC))) \
             $(addprefix testbed/e2e/,wires.sh matrix.sh netns.sh keys.sh af_xdp.sh hostnic.sh)
check-wires: ## the tests of wires and glue that need no test hosts
	$(Q)$(MAKE) --no-print-directory check-nodeps TEST_LIST="$(WIRE_TESTS)"

coverage-hosts: ## lines of glue and wires that counted-check-cluster, counted-check-verbs and counted-check-wires have executed; fails below testbed/coverage/floors-hosts
	$(Q)BUILD=$(HOSTS_GCOV) FLOORS=testbed/coverage/floors-hosts V="$(V)" \
		DATA="$(HOSTS_GCOV) $(wildcard $(GUESTS_GCOV)/*/gcov/g*)" TEST_TIMEOUT=3000 testbed/run testbed/coverage/measure; \
		status=$$?; sed -n '/^# /p' $(HOSTS_GCOV)/log/measure.log; exit $$status
.PHONY: coverage coverage-hosts check-wires
