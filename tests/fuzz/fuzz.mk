# SPDX-License-Identifier: MIT
# make fuzz: every tests/fuzz/fuzz-*.c is a libFuzzer program and has a directory of its name in
# tests/fuzz/corpus. Our sources are compiled anew for it, with clang and sanitizers: all of lib/, and the
# files outside of it that fuzz-NAME_SRC names (here). Variables: FUZZ_CC, FUZZ_SECONDS for each program.

FUZZ_CC ?= clang
FUZZ_SECONDS ?= 10
FUZZ_SANITIZE := address,undefined
FUZZ_CFLAGS := -std=gnu17 -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all $(WARNINGS)

fuzz-mcp_SRC := $(addprefix shim/,mcp.c tools.c tools-list.c render.c render-turn.c render-variables.c render-values.c excerpt.c)
# An environment, with what belongs to it.
fuzz_environment := $(addprefix daemon/,environment.c closure.c network-credential.c project.c)

fuzz-config_SRC := $(addprefix daemon/,config.c config-limits.c config-directories.c config-reader.c config-environment.c \
        config-network.c config-credential.c network-sets.c limits.c) $(fuzz_environment)
fuzz-closure_SRC := $(addprefix daemon/,closure.c project.c)
fuzz-environment_SRC := $(addprefix daemon/,config-artifact.c config-reader.c config-environment.c \
        config-network.c config-credential.c network-sets.c limits.c) $(fuzz_environment)
fuzz-artifact-json_SRC := $(fuzz-environment_SRC) daemon/environment-set.c
fuzz-archive_SRC := $(addprefix agent/,archive-restore.c part-report.c)
fuzz-part-report_SRC := agent/part-report.c
fuzz-report_SRC := agent/report.c
fuzz-request_SRC := agent/message.c
fuzz-agent-link_SRC := $(addprefix daemon/,agent-link.c agent-parse.c turn.c turn-reply.c turn-values.c bounds.c) \
        $(fuzz_environment)
fuzz-manifest_SRC := $(addprefix snapshot/,manifest.c report.c hash.c id.c)
fuzz-snapshot-report_SRC := snapshot/report.c
fuzz-session-record_SRC := $(addprefix daemon/,session-record.c session-state.c history.c limits.c \
        snapshot-result.c) $(fuzz_environment)
fuzz-snapshot-result_SRC := daemon/snapshot-result.c
fuzz-variables_SRC := daemon/variables.c
fuzz-http-request_SRC := $(addprefix proxy/,http-request.c http-fields.c http-target.c http-forward.c http-error.c http-chars.c)
fuzz-http-body_SRC := $(addprefix proxy/,http-body.c http-chars.c)
fuzz-proxy-settings_SRC := proxy/settings.c
fuzz-proxy-client_SRC := $(filter-out proxy/main.c proxy/confine.c proxy/control.c proxy/control-link.c,$(PROXY_SRC))
fuzz-proxy-report_SRC := $(addprefix daemon/,proxy-report.c network-refusals.c)
fuzz-socks-request_SRC := $(addprefix proxy/,socks-request.c http-chars.c)

FUZZ_NAMES := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz-*.c))
FUZZ_PROGRAMS := $(addprefix $(BUILD)/fuzz/,$(FUZZ_NAMES))
fuzz_objects = $(patsubst %.c,$(BUILD)/fuzz/obj/%.o,$(1))

$(BUILD)/fuzz/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(FUZZ_CC) $(CPPFLAGS_ALL) $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZE) \
	        -MMD -MP -c -o $@ $<

$(BUILD)/fuzz/libnixsandbox.a: $(call fuzz_objects,$(LIB_SRC))
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

.SECONDEXPANSION:
$(FUZZ_PROGRAMS): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $$(call fuzz_objects,$$($$*_SRC)) \
        $(BUILD)/fuzz/libnixsandbox.a
	$(call say,LD)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,$(FUZZ_SANITIZE) -Wl,--as-needed -o $@ $^ \
	        -lsystemd -ljson-c -lcgroup -lseccomp -lnettle -lidn2 -lcares -larchive -lm

-include $(wildcard $(BUILD)/fuzz/obj/*/*.d $(BUILD)/fuzz/obj/*/*/*.d)

# A program that does not build has failed, as tests/fuzz/run finds; a machine that can build none skips all.
fuzz:
	@if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | \
	        $(FUZZ_CC) -fsanitize=fuzzer,$(FUZZ_SANITIZE) -x c -o /dev/null - 2>/dev/null; then \
	        rm -f $(FUZZ_PROGRAMS); $(MAKE) --no-print-directory -k $(FUZZ_PROGRAMS); \
	else \
	        export FUZZ_SKIP='$(FUZZ_CC) with libFuzzer is not installed'; \
	fi; \
	FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(BUILD)/fuzz $(FUZZ_NAMES)

.PHONY: fuzz
