# SPDX-License-Identifier: MIT
# Test programs and the targets that run them. A tier is a command that prints "N passed, N failed, N skipped"
# as its last line; tests/check runs them all and adds up.

UNIT_PARTS := lib daemon shim agent ctl snapshot proxy
unit_src = $(wildcard tests/unit/$(1)/*.c)
# A part is tested with its objects but for the one that holds main().
part_obj = $(filter-out $(BUILD)/obj/$(1)/main.o,$(call objects,$(wildcard $(1)/*.c)))
UNIT_PROGRAMS := $(foreach p,$(UNIT_PARTS),$(if $(call unit_src,$(p)),$(BUILD)/tests/unit-$(p)))

# Nothing refers to the sections that criterion finds its tests in, so the linker must not drop them.
define unit_program
$(BUILD)/tests/unit-$(1): $(call objects,$(call unit_src,$(1))) $(filter-out $(LIB_OBJ),$(call part_obj,$(1))) $(LIBRARY)
	@mkdir -p $$(@D)
	$$(call say,LD)
	$$(Q)$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS_ALL) -Wl,--no-gc-sections -o $$@ $$^ \
	        -lcriterion -lsystemd -ljson-c -larchive -lcgroup -lseccomp -lnettle -lidn2 -lcares -lm $$(CURSES_LIBS)
-include $(patsubst %.o,%.d,$(call objects,$(call unit_src,$(1))))
endef
$(foreach p,$(UNIT_PARTS),$(eval $(call unit_program,$(p))))

unit: $(UNIT_PROGRAMS)
.PHONY: unit

check-unit: $(UNIT_PROGRAMS)
	tests/unit/run $^
.PHONY: check-unit

# The same programs from objects of their own, without what _FORTIFY_SOURCE would catch first. One test at a
# time, because criterion itself leaks where it runs several: that takes longer.
asan:
	UNIT_JOBS=1 UNIT_SECONDS=240 $(MAKE) -j$$(nproc) BUILD=$(BUILD)/asan OPTIMIZE='-O1 -g' HARDENING=-fno-omit-frame-pointer \
	        CFLAGS='-fsanitize=address,undefined -fno-sanitize-recover=all' check-unit
.PHONY: asan

include tests/fuzz/fuzz.mk

# Everything that needs no package to be there yet runs deps first, then make again, so that what deps installed is seen.
check:
	@tools/install-deps check
	@$(MAKE) --no-print-directory BUILD=$(BUILD) -j$$(nproc) all unit
	@tests/check --build $(BUILD)

demo:
	@tools/install-deps build
	@$(MAKE) --no-print-directory BUILD=$(BUILD) -j$$(nproc) all
	@tests/demo/demo --build $(BUILD)

$(BUILD)/bench/roundtrip: $(BUILD)/obj/bench/roundtrip.o $(LIBRARY)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ljson-c

bench: all $(BUILD)/bench/roundtrip
	@bench/bench --build $(BUILD); status=$$?; bench/closures --build $(BUILD) || status=1; \
	bench/snapshots --build $(BUILD) || status=1; bench/proxy --build $(BUILD) && exit $$status

# What checkpoints cost.
bench-checkpoints: all
	@bench/checkpoints --build $(BUILD)

# What saving and restoring costs; part of make bench.
bench-snapshots: all
	@bench/snapshots --build $(BUILD)

# What many store paths cost; part of make bench.
bench-closures: all
	@bench/closures --build $(BUILD)

# What it costs to go through the proxy; part of make bench.
bench-proxy: all
	@bench/proxy --build $(BUILD)

# A thousand sessions at once, which make bench has too; alone it takes a minute.
bench-sessions: all
	@bench/bench --build $(BUILD) --only-sessions

tidy:
	clang-tidy --quiet $(wildcard lib/*.c daemon/*.c shim/*.c ctl/*.c agent/*.c snapshot/*.c proxy/*.c environments/*.c become/*.c) -- -std=gnu17 -D_GNU_SOURCE -I. \
	        -DLIBEXECDIR='""' -DBINDIR='""' -DSYSCONFDIR='""' -DBWRAP='"bwrap"' $(shell $(PKG_CONFIG) --cflags $(PACKAGES))

.PHONY: check demo bench bench-sessions bench-snapshots bench-closures bench-checkpoints bench-proxy tidy
