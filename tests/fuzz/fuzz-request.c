/* SPDX-License-Identifier: MIT */

/*
 * The payload of a REQUEST, of any bytes. The daemon is trusted, but what it passes on is not: a request that
 * is taken keeps to the limits, and its code is what follows the first NUL.
 */

#include "agent/message.h"
#include "lib/agent-protocol.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *payload = (const char *) data, *nul = memchr(payload, 0, size);
        ExecuteRequest request = { .code_size = SIZE_MAX };

        if (request_parse(payload, size, &request) < 0) {
                assert_se(!request.code && request.code_size == SIZE_MAX);
                return 0;
        }

        assert_se(nul && request.code == nul + 1);
        assert_se(request.code_size == size - (size_t) (request.code - payload));
        assert_se(request.code_size <= AGENT_CODE_MAX);
        assert_se(memchr(request.interpreter, 0, sizeof(request.interpreter)));
        assert_se(utf8_is_valid(request.interpreter, strlen(request.interpreter), NULL));
        assert_se(request.timeout_usec <= REQUEST_TIMEOUT_USEC_MAX);
        return 0;
}
