# SPDX-License-Identifier: BSD-3-Clause
# Tests. Unit tests are cmocka programs, unit/*/test_*.c; end-to-end tests are programs or scripts in
# e2e/. All speak TAP; testbed/run counts. A test is added to TEST_LIST by being there.

UNITS += test
# A test need not use its state, and what --wrap replaces is declared nowhere.
CFLAGS_test = -Wno-unused-parameter -Wno-missing-prototypes -D_GNU_SOURCE -Ihostlib/include -Ihostlib/src -Ifirmware/include -Ifirmware/core \
              -Ifirmware/nic -Ifirmware/wire -Ifirmware/platform/daemon -Impi-glue $(TOOLS_INC) $(LAB_INC) \
              -Itestbed

# Unit tests: name -> what it is linked with.
# Without tools/lab, its tests are left out.
UNIT_SRC := $(filter-out $(if $(LAB_INC),,testbed/unit/lab/%),$(wildcard testbed/unit/*/test_*.c))
UNIT_BIN := $(patsubst %.c,$(BUILD)/%,$(notdir $(UNIT_SRC)))
UNIT_OBJ := $(UNIT_SRC:%.c=$(BUILD)/test/%.o)
unit_obj = $(filter %/$(1).o,$(UNIT_OBJ))
$(UNIT_BIN): $(BUILD)/%: $$(call unit_obj,$$*) $(BUILD)/libinproc.a $(BUILD)/libnbnicd.a \
             $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a $(BUILD)/libnbar.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %libglue.a %libverbs.a,$^) $(filter %.a,$^) $(filter %libnbfw.a,$^) -o $@ -lcmocka -ljansson -lm -lpthread

$(BUILD)/test_hostnic $(BUILD)/test_hostnic_owner $(BUILD)/test_hostnic_share $(BUILD)/test_hostlib_reach: | $(BUILD)/$(HOSTNIC_SO)

# A NIC daemon inside a test program.
INPROC_OBJ := $(BUILD)/test/testbed/unit/inproc.o
$(BUILD)/libinproc.a: $(INPROC_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
OBJS += $(INPROC_OBJ)

# These see a NIC's page at one address only: see single_mapping.c.
SINGLE_MAPPING_BIN := $(addprefix $(BUILD)/test_,hostlib team process_team process_team_ends)
SINGLE_MAPPING_OBJ := $(BUILD)/test/testbed/unit/hostlib/single_mapping.o
$(SINGLE_MAPPING_BIN): $(SINGLE_MAPPING_OBJ)
$(SINGLE_MAPPING_BIN): ALL_LDFLAGS += -Wl,--wrap=mmap,--wrap=munmap
OBJS += $(SINGLE_MAPPING_OBJ)

# Calls that a test replaces. In the first, each of these calls fails once.
wrap = $(1:%=-Wl$(comma)--wrap=%)
$(BUILD)/test_hostlib_faults: ALL_LDFLAGS += $(call wrap,malloc calloc aligned_alloc free pthread_mutex_lock pthread_mutex_unlock socket connect getsockopt sendmsg recvmsg recv mmap)
$(BUILD)/test_file: ALL_LDFLAGS += $(call wrap,read)
$(BUILD)/test_trace: ALL_LDFLAGS += $(call wrap,fstat)
$(BUILD)/test_fit: ALL_LDFLAGS += $(call wrap,malloc)
$(BUILD)/test_option: ALL_LDFLAGS += $(call wrap,isatty clock_gettime)
$(BUILD)/test_flats: ALL_LDFLAGS += $(call wrap,calloc)
$(BUILD)/test_stat: ALL_LDFLAGS += $(call wrap,opendir)
$(BUILD)/test_stat_loop: ALL_LDFLAGS += $(call wrap,realloc clock_gettime time isatty ioctl nbar_nic_stat nbar_nic_latency nbar_nic_groups nbar_nic_group_stats nbar_error)
$(BUILD)/test_hostlib_host: ALL_LDFLAGS += $(call wrap,dlopen dlsym connect getsockopt geteuid poll)
$(patsubst %,$(BUILD)/test_hostlib_%,fd late link remote requests start): ALL_LDFLAGS += $(call wrap,recv recvmsg sendmsg)
$(BUILD)/test_hostlib_remote: ALL_LDFLAGS += $(call wrap,dlopen dlerror dlsym ioctl sched_yield nanosleep syscall)
$(BUILD)/test_hostlib_start: ALL_LDFLAGS += $(call wrap,send syscall)
$(BUILD)/test_hostlib_reply: ALL_LDFLAGS += $(call wrap,readlink)
$(BUILD)/test_hostlib_link: ALL_LDFLAGS += $(call wrap,nblib_link_start)
# The in-process NIC, which this test needs, keeps its own calls.
$(BUILD)/test_hostlib_reach: private ALL_LDFLAGS += $(call wrap,clock_gettime)
$(BUILD)/test_hostlib_wait: ALL_LDFLAGS += $(call wrap,clock_gettime nanosleep poll sched_yield shutdown syscall)
$(BUILD)/test_hostlib_wait: ALL_LDFLAGS += $(call wrap,sched_getcpu sched_getaffinity sched_setaffinity)
# Its calls are followed instruction by instruction: those of the dynamic linker are no part of them.
$(BUILD)/test_process_team_sleep: ALL_LDFLAGS += $(call wrap,syscall clock_gettime) -Wl,-z,now
$(BUILD)/test_wire_kernel: ALL_LDFLAGS += $(call wrap,uname)
$(BUILD)/test_wire_ring: ALL_LDFLAGS += $(call wrap,calloc aligned_alloc free getrandom)
$(BUILD)/test/testbed/unit/platform/test_hostnic_spec.o: CFLAGS_test += -Ifirmware/platform/inproc
$(BUILD)/test_hostnic_spec: $(filter %/hostnic_spec.o %/hostnic_log.o,$(HOSTNIC_OBJ))
$(BUILD)/test_hostnic_spec: ALL_LDFLAGS += $(call wrap,sched_getaffinity sched_setaffinity wire_auth_load)
$(BUILD)/test/testbed/unit/platform/test_hostnic_make.o: CFLAGS_test += -Ifirmware/platform/inproc
$(BUILD)/test_hostnic_make: $(filter %/hostnic_spec.o %/hostnic_log.o,$(HOSTNIC_OBJ))
$(BUILD)/test_hostnic_make: ALL_LDFLAGS += $(call wrap,calloc free eventfd nicd_add control_start control_admit nanosleep)
$(BUILD)/test_mailbox: ALL_LDFLAGS += $(call wrap,sched_yield nanosleep pthread_mutex_trylock syscall)
$(BUILD)/test_options: $(filter %/daemon/options.o,$(NICD_OBJ))
$(BUILD)/test_options: ALL_LDFLAGS += $(call wrap,sched_getaffinity strdup getpwnam getpwuid wire_auth_load)
$(BUILD)/test_privileges: $(filter %/daemon/privileges.o,$(NICD_OBJ))
$(BUILD)/test_privileges: ALL_LDFLAGS += $(call wrap,prctl geteuid getuid getgid seteuid setegid setgroups setresgid setresuid mkdir open fchown close rundir_take)
$(BUILD)/test_trace_ring: ALL_LDFLAGS += $(call wrap,calloc unlink posix_fallocate fchown fchmod mmap munmap close fclose)
$(BUILD)/test_rundir: ALL_LDFLAGS += $(call wrap,geteuid fstat fchmod ftruncate pwrite)
$(BUILD)/test_control_user: ALL_LDFLAGS += $(call wrap,getrlimit nanosleep accept4)
$(BUILD)/test_control $(BUILD)/test_control_client $(BUILD)/test_control_remote: ALL_LDFLAGS += $(call wrap,accept4 memfd_create calloc malloc free clock_gettime nanosleep getrlimit getsockopt sendmsg epoll_create1 epoll_ctl epoll_wait eventfd socket listen chmod pthread_create pthread_setname_np pthread_join pthread_cond_clockwait pthread_cond_signal pthread_mutex_lock pthread_mutex_unlock pthread_attr_init pthread_attr_destroy)
$(BUILD)/test_control_client: ALL_LDFLAGS += $(call wrap,getrandom)
$(BUILD)/test_control_remote: ALL_LDFLAGS += $(call wrap,dlopen dlsym dlerror getpeername setsockopt)
$(BUILD)/test_wakes: ALL_LDFLAGS += $(call wrap,calloc free socketpair syscall)
$(BUILD)/test_nicd: ALL_LDFLAGS += $(call wrap,clock_gettime sched_yield ppoll calloc free memfd_create ftruncate fcntl mmap munmap eventfd nbnic_device_pass nbnic_device_next nbnic_device_ask_kicks nbnic_device_stop trace_ring_note)

# With the library that makes tags, if it is there.
$(BUILD)/test/testbed/unit/wire/test_wire_auth.o: CFLAGS_test += $(if $(SODIUM),-DWIRES_SODIUM -Itestbed/unit/nic)
$(BUILD)/test/testbed/unit/wire/test_wire_frames.o: CFLAGS_test += $(if $(SODIUM),-DWIRES_SODIUM)
$(BUILD)/test_wire_auth $(BUILD)/test_wire_frames $(BUILD)/test_hostnic_make: ALL_LDFLAGS += -Wl,--no-as-needed $(SODIUM_LIBS)

# With the programs for the kernel, if they are built.
$(BUILD)/test/testbed/unit/wire/test_wire_kernel%: CFLAGS_test += $(if $(KERNEL),$(CFLAGS_kernel) -DWIRES_KERNEL)
$(addprefix $(BUILD)/test/testbed/unit/wire/,test_wire_kernel.o test_wire_kernel_posts.o test_wire_kernel_posts6.o test_wire_kernel_udp4.o test_wire_kernel_udp6.o test_wire_kernel_value.o test_wire_kernel_value4.o): $(if $(KERNEL),$(KERNEL_PROGRAMS) $(WIRE_BUILD_H))
$(addprefix $(BUILD)/,test_wire_kernel test_wire_kernel_posts test_wire_kernel_posts6 test_wire_kernel_udp4 test_wire_kernel_udp6 test_wire_kernel_value test_wire_kernel_value4): $(if $(KERNEL),$(WIRE_LOG_OBJ))
$(addprefix $(BUILD)/,test_wire_kernel test_wire_kernel_posts test_wire_kernel_posts6 test_wire_kernel_udp4 test_wire_kernel_udp6 test_wire_kernel_value test_wire_kernel_value4): ALL_LDFLAGS += $(if $(KERNEL),-Wl$(comma)--no-as-needed $(shell pkg-config --libs libbpf))

# NICs over a simulated wire.
NIC_WORLD_OBJ := $(BUILD)/test/testbed/unit/nic/nic_world.o
$(BUILD)/test_nic $(BUILD)/test_nic_admin $(BUILD)/test_nic_forged $(BUILD)/test_nic_latency $(BUILD)/test_nic_why $(BUILD)/test_wire_auth: $(NIC_WORLD_OBJ)
# NICs that run passes, over wires of a limited length.
NIC_NET_OBJ := $(BUILD)/test/testbed/unit/nic/nic_net.o
$(patsubst %,$(BUILD)/test_nic_%,pass peers probe pull rtt rtt_late rtt_many starts value): $(NIC_NET_OBJ)
RTT_PAIR_OBJ := $(BUILD)/test/testbed/unit/nic/rtt_pair.o
$(patsubst %,$(BUILD)/test_nic_%,rtt rtt_late rtt_many): $(RTT_PAIR_OBJ)
# A whole NIC, with its clients.
DEVICE_WORLD_OBJ := $(BUILD)/test/testbed/unit/nic/device_world.o
$(BUILD)/test_device $(BUILD)/test_lend $(BUILD)/test_quota: $(DEVICE_WORLD_OBJ)
# Whole NICs in simulated time.
SIM_WORLD_OBJ := $(addprefix $(BUILD)/test/testbed/sim/,fast.o fast_lend.o nics.o world.o world_host.o)
$(BUILD)/test_sim $(BUILD)/test_nic_loss: $(SIM_WORLD_OBJ)
# One NIC, and a trace of what it does.
NIC_TRACE_OBJ := $(BUILD)/test/testbed/unit/nic/nic_trace.o
$(BUILD)/test_nic_trace $(BUILD)/test_nic_trace_errors $(BUILD)/test_nic_group $(BUILD)/test_page $(BUILD)/test_mirror: $(NIC_TRACE_OBJ)
# A NIC whose platform and wire fail on demand.
REQUEST_WORLD_OBJ := $(BUILD)/test/testbed/unit/nic/request_world.o
$(BUILD)/test_request $(BUILD)/test_request_attach $(BUILD)/test_request_latency $(BUILD)/test_request_rare: $(REQUEST_WORLD_OBJ)
OBJS += $(NIC_WORLD_OBJ) $(NIC_NET_OBJ) $(RTT_PAIR_OBJ) $(DEVICE_WORLD_OBJ) $(NIC_TRACE_OBJ) $(REQUEST_WORLD_OBJ)

# The MPI glue, without an MPI.
$(BUILD)/libglue.a: $(GLUE_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^
$(patsubst testbed/unit/glue/%.c,$(BUILD)/%,$(wildcard testbed/unit/glue/test_*.c)): $(BUILD)/libglue.a
$(BUILD)/test_exchange: ALL_LDFLAGS += $(call wrap,calloc)
$(BUILD)/test_glue_config: ALL_LDFLAGS += $(call wrap,dlopen uname)
# Ranks are processes, with a fake MPI between them. Their system calls and allocations fail on demand.
RANKS_OBJ := $(BUILD)/test/testbed/unit/glue/ranks.o $(BUILD)/test/testbed/unit/glue/rank_faults.o
RANKS_BIN := $(patsubst %,$(BUILD)/%,test_join test_join_faults test_glue_post test_glue_ended test_glue_tuned test_glue_rare test_glue_value test_judge)
$(RANKS_BIN): $(RANKS_OBJ)
$(RANKS_BIN): ALL_LDFLAGS += $(call wrap,malloc calloc aligned_alloc free getrandom open posix_fallocate mmap socket connect sendmsg recvmsg fstat pthread_create pthread_join pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock clock_gettime sched_yield nanosleep)
$(BUILD)/test_glue_ended: ALL_LDFLAGS += $(call wrap,nbar_nic_why)
$(BUILD)/test_glue_post $(BUILD)/test_judge: ALL_LDFLAGS += $(call wrap,nbar_post)
$(BUILD)/test_judge: ALL_LDFLAGS += $(call wrap,nbar_process_team_post)
$(BUILD)/test_glue_log: ALL_LDFLAGS += $(call wrap,nbar_missing_why nbar_nic_why nbar_error)
$(BUILD)/test_glue_tuned: ALL_LDFLAGS += $(call wrap,dlopen dlsym dlerror)
$(BUILD)/test_glue_rare: ALL_LDFLAGS += $(call wrap,nbar_group_open nbar_missing_why nbar_error)
OBJS += $(RANKS_OBJ)
$(BUILD)/test_mates: ALL_LDFLAGS += $(call wrap,geteuid close)
$(BUILD)/test_mates_ended: ALL_LDFLAGS += $(call wrap,open read)
$(BUILD)/test_glue_node: ALL_LDFLAGS += $(call wrap,malloc free uname access open read stat)

$(UNIT_OBJ): $(NICD_PARTS)
TESTS += $(UNIT_BIN)
TEST_LIST += $(UNIT_BIN)
OBJS += $(UNIT_OBJ)

# End-to-end: scripts that start real daemons. The oracle is the program most of them use.
$(BUILD)/oracle: $(BUILD)/test/testbed/e2e/oracle.o $(BUILD)/tools/tools/bench/hostbar.o \
                 $(BUILD)/libnbar.a $(BUILD)/libnbnic.a $(BUILD)/libnbfw.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
# Some are sourced by others.
E2E_LAB := $(patsubst %,testbed/e2e/%.sh,lab-figures one-to-many report sweep threads tune)
E2E_SCRIPT := $(filter-out testbed/e2e/lib.sh testbed/e2e/plans.sh $(if $(LAB_INC),,$(E2E_LAB)),$(wildcard testbed/e2e/*.sh))
TESTS += $(BUILD)/oracle
TEST_LIST += $(E2E_SCRIPT)
OBJS += $(BUILD)/test/testbed/e2e/oracle.o

# A member of a group for why.sh.
$(BUILD)/member: $(BUILD)/test/testbed/e2e/member.o $(BUILD)/libnbar.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
TESTS += $(BUILD)/member
OBJS += $(BUILD)/test/testbed/e2e/member.o

# A host gone mad for kernel.sh.
$(BUILD)/mad_host: $(BUILD)/test/testbed/e2e/mad_host.o $(BUILD)/libnbar.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
TESTS += $(BUILD)/mad_host
OBJS += $(BUILD)/test/testbed/e2e/mad_host.o

# A long-lived program for recovery.sh.
$(BUILD)/rejoin: $(BUILD)/test/testbed/e2e/rejoin.o $(BUILD)/libnbar.a
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
TESTS += $(BUILD)/rejoin
OBJS += $(BUILD)/test/testbed/e2e/rejoin.o

# Bad clients, hosts and frames against a running daemon: libc and the ABI header alone.
ADVERSARY_SRC := $(wildcard testbed/e2e/adversary*.c) testbed/e2e/raw.c
ADVERSARY_OBJ := $(ADVERSARY_SRC:%.c=$(BUILD)/test/%.o)
$(BUILD)/adversary: $(ADVERSARY_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@
TESTS += $(BUILD)/adversary
TEST_LIST += $(BUILD)/adversary
OBJS += $(ADVERSARY_OBJ)

# Two users at one daemon, and clients that misuse their sockets; likewise.
$(BUILD)/strangers $(BUILD)/clients: $(BUILD)/%: $(BUILD)/test/testbed/e2e/%.o $(BUILD)/test/testbed/e2e/raw.o
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -lpthread
TESTS += $(BUILD)/strangers $(BUILD)/clients
TEST_LIST += $(BUILD)/strangers $(BUILD)/clients
OBJS += $(BUILD)/test/testbed/e2e/strangers.o $(BUILD)/test/testbed/e2e/clients.o

# What the firmware may need and include; the script asks for the flags of the units themselves. The map in
# CONTRIBUTING.md and the tree agree. What runs the tests finds faults. A sanitizer changes none of this.
TEST_LIST += $(if $(SAN),,testbed/firmware-check.sh testbed/map-check.sh testbed/house-check.sh testbed/gates.sh $(if $(LAB_INC),testbed/lab-check.sh))
export CFLAGS_FW = $(CFLAGS_fw)
export CFLAGS_LIB = $(CFLAGS_lib)
count: ## lines of product and tests, words of documents
	$(Q)testbed/count.sh
.PHONY: count
check-firmware: ## the firmware without libc, for five machines; and which folder may include which
	$(Q)BUILD=$(BUILD) CC="$(CC)" testbed/run testbed/firmware-check.sh

check-mutations: ## breaks the core in many ways and sees the unit tests fail; takes minutes
	$(Q)BUILD=$(BUILD) CC="$(CC)" TEST_TIMEOUT=1500 testbed/run testbed/mutate/run

# Mutants by standard operators, drawn from SEED; see testbed/mutate/mutants for the other settings.
COUNT ?= 60
check-mutants: all $$(TESTS) $(BUILD)/mc-wait $$(MPI_ORACLE) $$(MPI_STANDARD) ## COUNT=60 random mutants of all C files, from SEED; fails if the tests kill too few
	$(Q)testbed/deps.sh clang
	+$(Q)$(GCOV_MAKE) $(GCOV_BIN)
	$(Q)$(MAKE) --no-print-directory -Bn all $(UNIT_BIN) >$(BUILD)/mutants.commands
	$(Q)BUILD=$(BUILD) GCOV_BUILD=$(GCOV_BUILD) COUNT=$(COUNT) TEST_TIMEOUT=360000 testbed/run testbed/mutate/mutants; \
		status=$$?; sed -n '/^# /p' $(BUILD)/log/mutants.log; exit $$status

check-thread-mutations: ## the same with the thread barriers; takes minutes
	$(Q)BUILD=$(BUILD) CC="$(CC)" TEST_TIMEOUT=1500 testbed/run testbed/mutate/run-threads

check-unit: $(UNIT_BIN) ## the unit tests alone
	$(Q)BUILD=$(BUILD) testbed/run $(UNIT_BIN)

# Unit tests of what depends on the user, what needs more descriptors than a user has at first, and programs that users start.
USER_BIN = $(filter-out %/test_join_faults %/test_team_kinds,\
             $(patsubst %.c,$(BUILD)/%,$(notdir $(foreach f,glue hostlib platform wire,$(wildcard testbed/unit/$f/test_*.c)))))
USER_LIST := $(BUILD)/adversary testbed/e2e/examples.sh testbed/e2e/python.sh
check-user: all $$(USER_BIN) $(BUILD)/adversary ## unit tests and some others as an ordinary user; root runs them as nobody
	$(Q)BUILD=$(BUILD) testbed/as-user testbed/run $(patsubst $(BUILD)/%,build/%,$(USER_BIN) $(USER_LIST))
.PHONY: check-user

# Composed barriers of random profiles: some in every run of the unit tests, PROFILES here.
PROFILES ?= 10000
check-tune: $(BUILD)/test_compose ## composed barriers of PROFILES random profiles (10000), each run under loss
	$(Q)BUILD=$(BUILD) NBAR_ROUNDS=$(PROFILES) TEST_TIMEOUT=7200 testbed/run $(BUILD)/test_compose
.PHONY: check-tune

THREAD_BIN := $(filter $(BUILD)/test_team $(BUILD)/test_team_kinds $(BUILD)/test_process_team% $(BUILD)/test_hostlib% $(BUILD)/test_hostnic% \
                        $(BUILD)/test_glue_post $(BUILD)/test_glue_value,$(UNIT_BIN))
check-threads: $(THREAD_BIN) ## what has threads; for SAN=thread
	$(Q)BUILD=$(BUILD) testbed/run $(THREAD_BIN)

# Longer than the tests that it is made of are by themselves: ROUNDS barriers of each.
ROUNDS ?= 100000
check-oracle: all $(BUILD)/oracle $(BUILD)/test_team $(BUILD)/test_team_kinds ## every plan by NIC and by host on every wire, every kind of team: 100,000 barriers each
	$(Q)BUILD=$(BUILD) NBAR_ROUNDS=$(ROUNDS) TEST_TIMEOUT=20000 testbed/run testbed/e2e/matrix.sh \
		$(BUILD)/test_team_kinds $(BUILD)/test_team

check-install: all ## install into a folder, and build and run the example from there
	$(Q)BUILD=$(BUILD) testbed/run testbed/install.sh testbed/packaging.sh

.PHONY: check-oracle check-mutants check-thread-mutations check-firmware check-mutations check-unit check-threads check-install

include testbed/bench/bench.mk
include $(wildcard testbed/hosts/cluster.mk) testbed/mc/mc.mk testbed/sim/sim.mk testbed/coverage/coverage.mk testbed/fuzz/fuzz.mk testbed/mpi/mpi.mk testbed/soak/soak.mk testbed/faults/faults.mk testbed/verbs/verbs.mk testbed/riscv/riscv.mk testbed/fresh/fresh.mk
