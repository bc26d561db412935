# SPDX-License-Identifier: BSD-3-Clause
# Tests. Unit tests are cmocka programs, unit/test_*.c; end-to-end tests are programs or scripts in
# e2e/. All speak TAP; testbed/run counts. A test is added to TEST_LIST by being there.

UNITS += test
CFLAGS_test = -D_GNU_SOURCE -Ihostlib/include -Ihostlib/src -Ifirmware/include -Ifirmware/core \
              -Ifirmware/nic -Ifirmware/port -Itools -Itestbed

# Unit tests: name -> what it is linked with.
UNIT_SRC := $(wildcard testbed/unit/test_*.c)
UNIT_BIN := $(UNIT_SRC:testbed/unit/%.c=$(BUILD)/%)
UNIT_OBJ := $(UNIT_SRC:%.c=$(BUILD)/test/%.o)
$(UNIT_BIN): $(BUILD)/%: $(BUILD)/test/testbed/unit/%.o $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a \
             $(BUILD)/libnbar.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(filter %.o %.a,$^) -o $@ -lcmocka -ljansson -lm -lpthread

TESTS += $(UNIT_BIN)
TEST_LIST += $(UNIT_BIN)
OBJS += $(UNIT_OBJ)
