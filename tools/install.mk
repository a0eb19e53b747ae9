# SPDX-License-Identifier: MIT
# make install, make uninstall: both go through the same list of MODE:SOURCE:DIRECTORY[:NAME], so that what the one
# writes is what the other removes. Nothing outside of DESTDIR is written, and nothing is started or enabled.

LIBDIR ?= $(PREFIX)/lib
UNITDIR ?= $(LIBDIR)/systemd/system
SYSUSERSDIR ?= $(LIBDIR)/sysusers.d
TMPFILESDIR ?= $(LIBDIR)/tmpfiles.d
CATALOGDIR ?= $(LIBDIR)/systemd/catalog
BASHDIR ?= $(DATADIR)/bash-completion/completions
FISHDIR ?= $(DATADIR)/fish/vendor_completions.d
# Debian's zsh looks into a directory of its own for what comes in packages.
ZSHDIR ?= $(DATADIR)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
POLKITDIR ?= $(DATADIR)/polkit-1/actions

installed = $(foreach f,$(2),$(1):$(f):$(3))

INSTALLED := \
        $(call installed,755,$(BUILD)/nix-sandbox-mcp $(BUILD)/sandboxctl,$(BINDIR)) \
        $(call installed,755,$(BUILD)/sandboxd $(BUILD)/sandbox-agent $(BUILD)/sandbox-snapshot \
	        $(BUILD)/sandbox-environments $(BUILD)/sandbox-proxy $(BUILD)/sandbox-become,$(LIBEXECDIR)) \
        $(call installed,644,daemon/io.nixsandbox.varlink,$(DATADIR)/nix-sandbox) \
        $(call installed,644,$(UNITS),$(UNITDIR)) \
        $(call installed,644,$(UNIT_DROPINS),$(UNITDIR)/sandboxd.service.d) \
        $(call installed,644,$(wildcard units/sysusers.d/*.conf),$(SYSUSERSDIR)) \
        $(call installed,644,$(wildcard units/tmpfiles.d/*.conf),$(TMPFILESDIR)) \
        $(call installed,644,$(wildcard units/*.catalog),$(CATALOGDIR)) \
        $(call installed,644,$(wildcard polkit/*.policy),$(POLKITDIR)) \
        $(call installed,644,$(wildcard docs/man/*.1),$(MANDIR)/man1) \
        $(call installed,644,$(wildcard docs/man/*.5),$(MANDIR)/man5) \
        $(call installed,644,$(wildcard docs/man/*.8),$(MANDIR)/man8) \
        644:completions/sandboxctl.bash:$(BASHDIR):sandboxctl \
        $(call installed,644,completions/_sandboxctl,$(ZSHDIR)) \
        $(call installed,644,completions/sandboxctl.fish,$(FISHDIR)) \
        $(call installed,644,README.md CHANGELOG.md LICENSE docs/architecture.md,$(DOCDIR)) \
        $(call installed,644,$(wildcard docs/examples/* polkit/*.rules.example),$(DOCDIR)/examples)

# Directories that are nobody else's; the deepest first.
OWN_DIRECTORIES := $(UNITDIR)/sandboxd.service.d $(LIBEXECDIR) $(DATADIR)/nix-sandbox $(DOCDIR)/examples $(DOCDIR)

each = set -e; for entry in $(INSTALLED); do IFS=:; set -- $$entry; unset IFS; \
        to="$(DESTDIR)$$3/$${4:-$${2\#\#*/}}"; $(1); done

install: all $(UNITS)
	$(Q)$(call each,install -D -m "$$1" "$$2" "$$to")

uninstall:
	$(Q)$(call each,rm -f "$$to")
	$(Q)for d in $(OWN_DIRECTORIES); do \
	        [ ! -d "$(DESTDIR)$$d" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$d"; \
	done

.PHONY: install uninstall

# The Debian package, from a copy of what is here, with debhelper; the result is $(BUILD)/deb/*.deb.
# Not all of build-essential is needed.
DEB := $(abspath $(BUILD))/deb

deb:
	$(Q)rm -rf $(DEB) && mkdir -p $(DEB)/source
	$(Q)tar --exclude-vcs --exclude=node_modules --exclude=./build --exclude=./debian/build \
	        --exclude='$(patsubst $(CURDIR)/%,./%,$(abspath $(BUILD)))' -cf - . | tar -xf - -C $(DEB)/source
	$(Q)cd $(DEB)/source && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u BUILD \
	        DEB_BUILD_OPTIONS="$${DEB_BUILD_OPTIONS:+$$DEB_BUILD_OPTIONS }noautodbgsym" \
	        dpkg-buildpackage --unsigned-source --unsigned-changes --build=binary --ignore-builtin-builddeps
	$(Q)rm -rf $(DEB)/source

.PHONY: deb
