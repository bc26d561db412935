# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks of the NIC itself, and the test of its fairness.

# The test of fairness, which uses only libc and the ABI header.
FAIR_OBJ := $(patsubst %.c,$(BUILD)/test/%.o,$(wildcard testbed/e2e/fair*.c) testbed/e2e/raw.c)
$(BUILD)/fair: $(FAIR_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
# Gives daemons of this test the receive buffers of an untuned machine.
$(BUILD)/rcvbuf.so: testbed/e2e/rcvbuf.c
	$(call say,LD,$@)
	$(Q)$(CC) -std=c11 $(WARN) -O2 -fPIC -shared $< -o $@
TESTS += $(BUILD)/fair $(BUILD)/rcvbuf.so
TEST_LIST += $(BUILD)/fair
OBJS += $(FAIR_OBJ)

# The cost of a token in the pass of a NIC. loop_nics.c uses internals of the daemon.
BENCH_LOOP_OBJ := $(addprefix $(BUILD)/test/testbed/,bench/loop.o bench/loop_nics.o e2e/raw.o)
$(BUILD)/bench-loop: $(BENCH_LOOP_OBJ) $(BUILD)/libnbnicd.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(SODIUM_LIBS) -lpthread
OBJS += $(BENCH_LOOP_OBJ)

bench-loop: $(BUILD)/bench-loop ## ns a token in the whole pass of a NIC, by parts
	$(Q)$(BUILD)/bench-loop $(LOOP)

bench-instructions: $(BUILD)/bench-loop ## instructions of a token, by parts; they repeat exactly
	$(Q)BUILD=$(BUILD) testbed/bench/instructions.sh

# Latency over loss: whole NICs in the simulator.
BENCH_LOSS_OBJ := $(BUILD)/test/testbed/bench/loss.o
$(BUILD)/bench-loss: $(BENCH_LOSS_OBJ) $(SIM_OBJ) $(SIM_WORLD_OBJ) $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -lcmocka -lm
OBJS += $(BENCH_LOSS_OBJ)
TESTS += $(BUILD)/bench-loss

bench-loss: $(BUILD)/bench-loss ## latency of a barrier over loss, beside the floor of theory
	$(Q)$(BUILD)/bench-loss $(LOSS)

bench-loss-hosts: all $(BUILD)/bench-loss $(BUILD)/cluster-hold ## the same with real daemons, on test hosts
	$(Q)BUILD=$(BUILD) HOSTS=$(HOSTS) BARRIERS=$(BARRIERS) DUPLICATE=$(DUPLICATE) REORDER=$(REORDER) \
		PERCENTS="$(PERCENTS)" testbed/bench/loss-hosts.sh

bench-fair: all $(BUILD)/fair $(BUILD)/rcvbuf.so ## a bystander's barriers, alone and while other clients attack
	$(Q)BUILD=$(BUILD) $(BUILD)/fair --bench $(FAIR)

$(BUILD)/judge.%: testbed/bench/judge.c
	$(call say,MPICC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(MPICC_$*) -std=c11 -D_DEFAULT_SOURCE $(WARN) $(CFLAGS) $< -o $@

JUDGE_BIN = $(CLUSTER_MPI:%=$(BUILD)/judge.%)
bench-judge: all $$(CLUSTER_BIN) $$(JUDGE_BIN) ## barriers of MPI programs with nbar and without, where NICs may have no core
	$(Q)BUILD=$(BUILD) testbed/bench/judge.sh

# A bare frame between two programs of tcx.
$(BUILD)/bounce.bpf.o: testbed/bench/bounce.bpf.c testbed/bench/bounce.h
	$(call say,CLANG,$@)
	$(Q)clang -target bpf -O2 -g -ffreestanding -Wall -Wextra -isystem /usr/include/$(shell $(CC) -print-multiarch) -c $< -o $@
$(BUILD)/bounce: testbed/bench/bounce.c testbed/bench/bounce.h
	$(call say,LD,$@)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $< -o $@ $(shell pkg-config --cflags --libs libbpf)

bench-kernel: all $$(CLUSTER_BIN) $(BUILD)/oracle $(BUILD)/bounce $(BUILD)/bounce.bpf.o ## the wire kernel beside Open MPI, udp, af_packet and a bare frame
	$(Q)BUILD=$(BUILD) testbed/bench/kernel.sh

.PHONY: bench-fair bench-instructions bench-judge bench-kernel bench-loop bench-loss bench-loss-hosts
