# SPDX-License-Identifier: MIT
# Units follow PREFIX, which may be another one at "make install", KILL, and the systemd that they are made for:
# DelegateSubgroup= is new in 254; what an older one needs in its place is in before-254/ (see docs/architecture.md).

SYSTEMD_VERSION ?= $(shell $(PKG_CONFIG) --modversion libsystemd 2>/dev/null | sed 's/[^0-9].*//')
HAVE_SUBGROUP := $(shell [ '$(SYSTEMD_VERSION)' -ge 254 ] 2>/dev/null && echo 1)

UNITS := units/sandboxd.socket units/nix-sandbox.slice $(BUILD)/units/sandboxd.service \
        $(if $(HAVE_SUBGROUP),,units/before-254/nix-sandbox-sessions.service)
UNIT_DROPINS := $(if $(HAVE_SUBGROUP),,units/before-254/50-sessions.conf)

$(BUILD)/units/%: units/%.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@LIBEXECDIR@|$(LIBEXECDIR)|g' -e 's|@KILL@|$(KILL)|' \
	        -e '$(if $(HAVE_SUBGROUP),s|@SUBGROUP@|DelegateSubgroup=supervisor|,/^@SUBGROUP@$$/d)' $< > $@

FORCE:
.PHONY: FORCE
