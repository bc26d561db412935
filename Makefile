# SPDX-License-Identifier: BSD-3-Clause
# One makefile for all of nbar; each folder adds its own *.mk. `make help` lists what it can do.
#
# V=1             show the commands
# SAN=LIST        build with -fsanitize=LIST (address,undefined or thread), in a folder of its own
# CC=clang        any C11 compiler; DEBUG=1 for -O0 -g
# prefix= libdir= sysconfdir= DESTDIR= ...: where make install puts things, as in the GNU coding standards

# A release also changes nbar.h, debian/changelog, packaging/ (git grep -nF 0.1.0) and manual pages (.TH).
VERSION  := 0.1.0
DESTDIR  ?=
SAN      ?=
DEBUG    ?=
comma    := ,

prefix        = /usr/local
bindir        = $(prefix)/bin
libdir        = $(prefix)/lib
libexecdir    = $(prefix)/libexec
includedir    = $(prefix)/include
sysconfdir    = /etc
mandir        = $(prefix)/share/man
docdir        = $(prefix)/share/doc/nbar
unitdir       = $(prefix)/lib/systemd/system
sysusersdir   = $(prefix)/lib/sysusers.d

BUILD    ?= build$(if $(SAN),-$(subst $(comma),-,$(SAN)))$(if $(DEBUG),-debug)

ifeq ($(origin CC),default)
CC       := gcc
endif
AR       ?= ar
CXX      ?= g++
CFLAGS   ?= $(if $(DEBUG),-O0,-O2) -g
WARN     := -Wall -Wextra -Wpedantic -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla
ALL_CFLAGS = -std=c11 $(WARN) $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer) \
             -MMD -MP
# Where programs of ours find objects that they load: beside them, or where they are installed. With a
# sanitizer it is that which calls dlopen(): so the program's own path must count for all.
RPATH    ?= $$ORIGIN:$$ORIGIN/..:$$ORIGIN/..$(patsubst $(prefix)/%,/%,$(filter $(prefix)/%,$(libdir)))
ALL_LDFLAGS = $(LDFLAGS) $(if $(RPATH),-Wl$(comma)-rpath$(comma)'$(RPATH)') \
              $(if $(SAN),-Wl$(comma)--disable-new-dtags) $(if $(SAN),-fsanitize=$(SAN))
V        ?=
Q        := $(if $(V),,@)
say       = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(2)')

.DEFAULT_GOAL := all
.SECONDEXPANSION:
.DELETE_ON_ERROR:

# Each folder appends: ALL (things to build), OBJS (for dependencies), INSTALLS (targets), CLEAN.
ALL :=
OBJS :=
INSTALLS :=

include firmware/firmware.mk
include hostlib/hostlib.mk
include mpi-glue/mpi-glue.mk
include tools/tools.mk
include testbed/testbed.mk

all: $(ALL) ## build everything (the default)

# Objects: flags of a folder are in CFLAGS_<unit>; an object belongs to the unit its path names.
# build/<unit>/path.o from path.c
define unit_rules
$(BUILD)/$(1)/%.o: %.c Makefile $$(wildcard */*.mk)
	$$(call say,CC,$$@)
	$$(Q)mkdir -p $$(@D)
	$$(Q)$$(CC) $$(ALL_CFLAGS) $$(CFLAGS_$(1)) -c $$< -o $$@
endef
$(foreach u,$(UNITS),$(eval $(call unit_rules,$(u))))

-include $(OBJS:.o=.d)

deps: ## install the Debian packages that are missing (as root or through sudo)
	$(Q)testbed/deps.sh

# make demo and make check build with every processor, unless -j says how many.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

demo: ## N nodes synchronise through soft NICs: NIC-based against host-based
	$(Q)testbed/deps.sh --demo
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) all
	$(Q)$(BUILD)/nbar bench --nodes 2,4,8,16 --where nic,host --alg pairwise --wire ring -i 2000 -x 200 --launches 3

check: deps ## all tests that need no privileges
	$(Q)$(MAKE) --no-print-directory $(PARALLEL) check-nodeps

check-nodeps: all $(TESTS)
	$(Q)BUILD=$(BUILD) SAN=$(SAN) testbed/run $(TEST_LIST)

bench: all ## latency of barriers, NIC-based against host-based, sizes 2 to 32, five repetitions
	$(Q)$(BUILD)/nbar bench --nodes 2,4,8,16,32 --where nic,host --alg pairwise,dissemination:1,dissemination:3 --wire ring -i 10000 -x 1000 --launches 5

install: $(INSTALLS) ## install into $(DESTDIR)$(prefix)

# Removes the files that an installation into an empty folder has, and what Python has compiled.
UNINSTALL := $(abspath $(BUILD))/uninstall
INSTALLED  = $(abspath $(DESTDIR))
uninstall: ## remove what make install has installed with the same settings
	$(if $(filter /%,$(prefix)),,$(error prefix= is not an absolute path: $(prefix)))
	$(Q)rm -rf $(UNINSTALL) && $(MAKE) --no-print-directory install DESTDIR=$(UNINSTALL)
	$(Q)cd $(UNINSTALL) && find . ! -type d -printf '$(INSTALLED)/%P\0' | xargs -0 rm -f $(INSTALLED)$(pythondir)/__pycache__/nbar.*.pyc
	$(Q)cd $(UNINSTALL) && find . -depth -type d -path '*nbar*' -printf '$(INSTALLED)/%P\0' | \
		xargs -0 rmdir --ignore-fail-on-non-empty $(INSTALLED)$(pythondir)/__pycache__ 2>/dev/null || true
	$(Q)rm -rf $(UNINSTALL)

DIST := $(BUILD)/nbar-$(VERSION).tar.gz
dist: ## the sources as $(BUILD)/nbar-VERSION.tar.gz
	$(Q)mkdir -p $(BUILD)
	$(Q)testbed/files | tar -czf $(DIST) --owner=0 --group=0 --transform='s,^,nbar-$(VERSION)/,' -T -

format: ## clang-format all sources
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

files: ## what each source file does: make files | grep -i WORD
	$(Q)testbed/files --sources | sort -u | xargs awk -f testbed/files.awk

tags: ## where each name is defined, for editors: needs ctags
	$(call say,TAGS,$@)
	$(Q)git ls-files '*.[ch]' | ctags -L - -f $@

# Every compilation of `make all` and of the tests, as JSON for language servers.
compile_commands.json: Makefile $(wildcard */*.mk */*/*.mk) ## every compilation, for language servers
	$(call say,GEN,$@)
	$(Q)$(MAKE) --no-print-directory -Bnk all $(TESTS) 2>/dev/null | testbed/compile-commands >$@

hooks: ## git checks the format of what is committed
	$(Q)ln -sf "$(CURDIR)/testbed/pre-commit" "$$(git rev-parse --git-path hooks)/pre-commit"

clean: ## remove what was built
	$(Q)rm -rf build build-*

help: ## this text
	@awk -F ':.*## ' '/^[a-z_.-]+:.*## /{printf "  make %-21s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: all deps demo check check-nodeps bench install uninstall dist format tags hooks clean help
