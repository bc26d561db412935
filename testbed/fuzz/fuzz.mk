# SPDX-License-Identifier: BSD-3-Clause
# Fuzzing by libFuzzer: clang, with the address and undefined-behaviour sanitizers. The targets are
# built in a folder of their own.

FUZZ_BUILD := build-fuzz
FUZZ_CC ?= clang
FUZZ_SRC := $(wildcard testbed/fuzz/fuzz_*.c)
FUZZ_NAME := $(patsubst testbed/fuzz/%.c,%,$(FUZZ_SRC))
FUZZ_OBJ := $(FUZZ_SRC:%.c=$(BUILD)/test/%.o)
FUZZ_BIN := $(FUZZ_NAME:%=$(BUILD)/%)
$(FUZZ_BIN): $(BUILD)/%: $(BUILD)/test/testbed/fuzz/%.o $(BUILD)/libnbtune.a $(BUILD)/libnbnicd.a \
             $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer $(filter %.o,$^) $(filter %.a,$^) $(BUILD)/libnbfw.a -o $@ -ljansson -lm -lpthread $(SODIUM_LIBS)
$(BUILD)/fuzz_config: $(addprefix $(BUILD)/nicd/firmware/platform/daemon/,options.o options_list.o)
OBJS += $(FUZZ_OBJ)

# With T, each target runs for T seconds; without T, it runs RUNS inputs, from a fixed seed.
T ?=
RUNS ?= 20000
fuzz: ## fuzzes frames, pages, requests, plans, profiles and configuration files: T=60 seconds each
	$(Q)testbed/deps.sh clang libclang-rt-dev
	+$(Q)$(MAKE) --no-print-directory BUILD=$(FUZZ_BUILD) CC="$(FUZZ_CC)" SAN=fuzzer-no-link,address,undefined \
		$(FUZZ_NAME:%=$(FUZZ_BUILD)/%)
	$(Q)T=$(T) RUNS=$(RUNS) BUILD=$(FUZZ_BUILD) TEST_TIMEOUT=360000 testbed/run testbed/fuzz/run
.PHONY: fuzz
