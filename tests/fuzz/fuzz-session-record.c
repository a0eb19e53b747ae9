/* SPDX-License-Identifier: MIT */

/* A file in the runtime directory of any bytes: no record, or one that is written and read again the same. */

#include "daemon/session-record.h"

#define ID "0123456789ab"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_ json_object *o = NULL, *second = NULL;
        SessionRecord r = {}, again = {};
        const char *text;
        size_t text_size;

        if (session_record_parse(ID, (const char *) data, size, &r) < 0) {
                assert_se(!r.json && !r.groups);
                return 0;
        }

        assert_se(r.project[0] == '/' && r.state < SESSION_DEAD && r.uid != (uid_t) -1);
        assert_se(session_record_to_json(&r, &o) == 0);
        text = json_text(o, &text_size);
        assert_se(text && session_record_parse(ID, text, text_size, &again) == 0);
        assert_se(session_record_to_json(&again, &second) == 0 && json_object_equal(o, second));
        session_record_done(&again);
        session_record_done(&r);
        return 0;
}
