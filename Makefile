# SPDX-License-Identifier: MIT
# make            build everything into build/
# make demo       install what is missing, build, hold an MCP conversation with a private daemon
# make check      install what is missing, build, run every test tier that this machine can run
# Variables: BUILD (out-of-tree directory), CC, WERROR=1, DESTDIR, PREFIX, SYSTEMD_VERSION (of the target), and for where
# programs are not found in PATH: BWRAP (bubblewrap's), KILL (as the service calls it)

BUILD ?= build
PREFIX ?= /usr
SYSCONFDIR ?= /etc
LIBEXECDIR ?= $(PREFIX)/libexec/nix-sandbox
BINDIR ?= $(PREFIX)/bin
DATADIR ?= $(PREFIX)/share
MANDIR ?= $(DATADIR)/man
DOCDIR ?= $(DATADIR)/doc/nix-sandbox
BWRAP ?= bwrap
KILL ?= kill

# V=1 shows the commands.
ifeq ($(V),)
Q := @
say = @printf '  %-6s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)'
endif

PKG_CONFIG ?= pkg-config
PACKAGES := libsystemd json-c libseccomp nettle libidn2
CURSES_LIBS := $(shell $(PKG_CONFIG) --libs ncursesw 2>/dev/null || echo -lncursesw -ltinfo)

WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wundef -Wwrite-strings \
        -Wvla -Wswitch-enum -Wformat=2 -Wno-unused-parameter -Wno-missing-field-initializers
WERROR ?= 1
ifeq ($(WERROR),1)
WARNINGS += -Werror
endif
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
CONTROL_FLOW := $(if $(filter x86_64-% i386-% i486-% i586-% i686-%,$(MACHINE)),-fcf-protection)$(if $(filter aarch64-%,$(MACHINE)),-mbranch-protection=standard)
HARDENING ?= -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection $(CONTROL_FLOW)
OPTIMIZE ?= -O2 -g
CPPFLAGS_ALL := -D_GNU_SOURCE -I. -DLIBEXECDIR='"$(LIBEXECDIR)"' -DBINDIR='"$(BINDIR)"' \
        -DSYSCONFDIR='"$(SYSCONFDIR)"' -DBWRAP='"$(BWRAP)"' $(CPPFLAGS)
CFLAGS_ALL = -std=gnu17 $(OPTIMIZE) $(WARNINGS) $(HARDENING) -ffunction-sections -fdata-sections -fPIE \
        $(shell $(PKG_CONFIG) --cflags $(PACKAGES) 2>/dev/null) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now -Wl,--as-needed -Wl,--gc-sections $(LDFLAGS)

LIB_SRC := $(wildcard lib/*.c)
DAEMON_SRC := $(wildcard daemon/*.c)
SHIM_SRC := $(wildcard shim/*.c)
CTL_SRC := $(wildcard ctl/*.c)
AGENT_SRC := $(wildcard agent/*.c)
SNAPSHOT_SRC := $(wildcard snapshot/*.c)
PROXY_SRC := $(wildcard proxy/*.c)
ENVIRONMENTS_SRC := $(wildcard environments/*.c)
BECOME_SRC := $(wildcard become/*.c)
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

LIB_OBJ := $(call objects,$(LIB_SRC))
DAEMON_OBJ := $(call objects,$(DAEMON_SRC))
SHIM_OBJ := $(call objects,$(SHIM_SRC))
CTL_OBJ := $(call objects,$(CTL_SRC))
AGENT_OBJ := $(call objects,$(AGENT_SRC))
SNAPSHOT_OBJ := $(call objects,$(SNAPSHOT_SRC))
PROXY_OBJ := $(call objects,$(PROXY_SRC))
ENVIRONMENTS_OBJ := $(call objects,$(ENVIRONMENTS_SRC))
BECOME_OBJ := $(call objects,$(BECOME_SRC))
ALL_OBJ := $(LIB_OBJ) $(DAEMON_OBJ) $(SHIM_OBJ) $(CTL_OBJ) $(AGENT_OBJ) $(SNAPSHOT_OBJ) $(PROXY_OBJ) $(ENVIRONMENTS_OBJ) \
        $(BECOME_OBJ)

LIBRARY := $(BUILD)/libnixsandbox.a
PROGRAMS := $(BUILD)/sandboxd $(BUILD)/nix-sandbox-mcp $(BUILD)/sandboxctl $(BUILD)/sandbox-agent \
        $(BUILD)/sandbox-snapshot $(BUILD)/sandbox-environments $(BUILD)/sandbox-proxy \
        $(BUILD)/sandbox-become

all: $(PROGRAMS)

# make deps runs first of all, so that the flags of packages it installs are seen by the build proper.
deps:
	tools/install-deps

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The files they embed with .incbin, which -MMD does not see.
$(BUILD)/obj/agent/drivers.o: $(wildcard agent/drivers/*)
$(BUILD)/obj/daemon/idl.o: daemon/io.nixsandbox.varlink

$(LIBRARY): $(LIB_OBJ)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(BUILD)/sandboxd: $(DAEMON_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -lsystemd -ljson-c -lcgroup -lseccomp -lnettle -lidn2 -lm

$(BUILD)/nix-sandbox-mcp: $(SHIM_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ljson-c

$(BUILD)/sandboxctl: $(CTL_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ljson-c -lnettle $(CURSES_LIBS)

$(BUILD)/sandbox-snapshot: $(SNAPSHOT_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ljson-c -lseccomp -lnettle

$(BUILD)/sandbox-environments: $(ENVIRONMENTS_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ljson-c

$(BUILD)/sandbox-proxy: $(PROXY_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -lsystemd -ljson-c -lseccomp -lcares -lidn2

# Of libarchive the agent takes tar and the file system, which need libacl; the linker drops the formats and filters
# that would need more, so the other libraries of libarchive's .pc file are not named.
ARCHIVE_LIBS := -larchive -lacl

# pid 1 of every jail: static, because a jail has whatever libraries its environment has, and not
# position-independent, because relocations would make its pages private to each session.
$(BUILD)/sandbox-agent: $(AGENT_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) -static -Wl,--gc-sections -Wl,-z,relro $(LDFLAGS) -o $@ $^ -ljson-c $(ARCHIVE_LIBS)

# The same for what is executed before each jail: it costs 26 page faults, as any static program; with shared libraries 52.
$(BUILD)/sandbox-become: $(BECOME_OBJ) $(LIBRARY)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) -static -Wl,--gc-sections -Wl,-z,relro $(LDFLAGS) -o $@ $^

-include $(ALL_OBJ:.o=.d)

include tests/tests.mk
include units/units.mk
include tools/install.mk

clean:
	rm -rf $(BUILD)

.PHONY: all deps clean
.DELETE_ON_ERROR:
