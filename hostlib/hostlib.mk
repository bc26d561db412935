# SPDX-License-Identifier: BSD-3-Clause
# libnbar: what a program links. Sees nbar.h, the ABI and libc; no firmware, no DPDK.

UNITS += lib example
CFLAGS_lib = -D_GNU_SOURCE -fPIC -Ihostlib/include -Ihostlib/src -Ifirmware/include
LIB_SRC := $(wildcard hostlib/src/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/lib/%.o)
LIB_SO := libnbar.so.$(firstword $(subst ., ,$(VERSION)))

$(BUILD)/libnbar.a: $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BUILD)/$(LIB_SO): $(LIB_OBJ) hostlib/libnbar.map
	$(call say,LD,$@)
	$(Q)$(CC) -shared $(ALL_LDFLAGS) -Wl,-soname,$(LIB_SO) -Wl,--version-script=hostlib/libnbar.map \
		$(LIB_OBJ) -o $@
	$(Q)ln -sf $(LIB_SO) $(BUILD)/libnbar.so

ALL += $(BUILD)/libnbar.a $(BUILD)/$(LIB_SO)
OBJS += $(LIB_OBJ)

# Examples: programs of users, so they see the public headers alone. That of OpenMP is left out
# where the compiler has none.
HAS_OPENMP := $(shell echo 'int main(void) { return 0; }' | \
                $(CC) -fopenmp -x c - -o /dev/null 2>/dev/null && echo yes)
CFLAGS_example = -D_DEFAULT_SOURCE -Ihostlib/include -Ifirmware/include
EXAMPLE_SRC := hostlib/examples/hello.c hostlib/examples/events.c hostlib/examples/cg.c $(if $(HAS_OPENMP),hostlib/examples/openmp.c)
EXAMPLE_OBJ := $(EXAMPLE_SRC:%.c=$(BUILD)/example/%.o)
EXAMPLES := $(EXAMPLE_SRC:hostlib/examples/%.c=$(BUILD)/examples/%)
$(EXAMPLES): $(BUILD)/examples/%: $(BUILD)/example/hostlib/examples/%.o $(BUILD)/libnbar.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ -lpthread
$(BUILD)/examples/openmp: ALL_LDFLAGS += -fopenmp
$(BUILD)/example/hostlib/examples/openmp.o: CFLAGS_example += -fopenmp

ALL += $(EXAMPLES)
OBJS += $(EXAMPLE_OBJ)

# Where Python looks for modules: as Debian's python3 has it. For another prefix, set PYTHONPATH.
PYTHON_VERSION = $(if $(filter /usr,$(prefix)),3,$(shell python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo 3))
pythondir = $(prefix)/lib/python$(PYTHON_VERSION)/dist-packages
LIB_HEADER := $(wildcard hostlib/include/*.h hostlib/include/*.hpp) firmware/include/nbar_abi.h
cmakedir = $(libdir)/cmake/nbar
moduledir = $(prefix)/share/modulefiles/nbar
# The way from one folder to another, so that what is installed can be moved.
from = $(shell realpath -ms --relative-to=$(1) $(2))
# `man FUNCTION` shows the page whose synopsis has the function. $(1): pages.
man3_links = $(Q)for page in $(1); do \
	for f in $$(sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/s/.*[ *]\(nbar_[a-z_]*\)(.*/\1/p' $$page); do \
		ln -sf $${page\#\#*/} $(DESTDIR)$(mandir)/man3/$$f.3; \
	done; \
done
INSTALLS += install-lib
install-lib: $(BUILD)/libnbar.a $(BUILD)/$(LIB_SO)
	$(Q)install -d $(DESTDIR)$(includedir) $(DESTDIR)$(libdir)/pkgconfig $(DESTDIR)$(cmakedir) $(DESTDIR)$(moduledir) \
		$(DESTDIR)$(mandir)/man3 $(DESTDIR)$(pythondir)
	$(Q)install -m 644 hostlib/python/nbar.py $(DESTDIR)$(pythondir)
	$(Q)install -m 644 $(LIB_HEADER) $(DESTDIR)$(includedir)
	$(Q)install -m 644 $(BUILD)/libnbar.a $(DESTDIR)$(libdir)
	$(Q)install -m 755 $(BUILD)/$(LIB_SO) $(DESTDIR)$(libdir)
	$(Q)ln -sf $(LIB_SO) $(DESTDIR)$(libdir)/libnbar.so
	$(Q)sed -e 's|@prefix@|$(prefix)|' -e 's|@libdir@|$(libdir)|' -e 's|@includedir@|$(includedir)|' \
		-e 's|@VERSION@|$(VERSION)|' hostlib/nbar.pc.in >$(DESTDIR)$(libdir)/pkgconfig/nbar.pc
	$(Q)for f in nbar-config nbar-config-version; do \
		sed -e 's|@includedir@|$(call from,$(cmakedir),$(includedir))|' -e 's|@VERSION@|$(VERSION)|' \
			hostlib/$$f.cmake.in >$(DESTDIR)$(cmakedir)/$$f.cmake || exit; \
	done
	$(Q)sed -e 's|@prefix@|$(call from,$(moduledir),$(prefix))|' -e 's|@libdir@|$(call from,$(prefix),$(libdir))|' \
		-e 's|@pythondir@|$(call from,$(prefix),$(pythondir))|' \
		-e 's|@components@|$(call from,$(prefix),$(or $(OMPI_COMPONENTS),$(libdir)/openmpi))|' packaging/nbar.module >$(DESTDIR)$(moduledir)/$(VERSION)
	$(Q)install -m 644 hostlib/man/*.3 $(DESTDIR)$(mandir)/man3
	$(call man3_links,$(wildcard hostlib/man/*.3))
.PHONY: install-lib
