/* SPDX-License-Identifier: MIT */

/* What sandbox-snapshot answers, of any bytes: what is taken of it is typed, and what is made of it is bounded text. */

#include "daemon/snapshot-result.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int look(const SnapshotInfo *info, void *userdata) {
        assert_se(snapshot_id_is_valid(info->id) && name_is_valid(info->name) && name_is_valid(info->environment));
        assert_se(info->project[0] == '/' && name_is_valid(info->reason));
        return 0;
}

static void look_at_parts(json_object *parts) {
        _cleanup_json_ json_object *skipped = NULL;
        _cleanup_(buffer_done) Buffer text = {};

        assert_se(snapshot_skipped(parts, &skipped) == 0);
        assert_se(json_object_array_length(skipped) <= 2 * SNAPSHOT_SKIPPED_MAX);
        assert_se(snapshot_skipped_text(parts, 10, &text) == 0);
        assert_se(utf8_is_valid(buffer_data(&text), buffer_size(&text), NULL));
        assert_se(buffer_size(&text) == 0 || !memchr(buffer_data(&text), '\n', buffer_size(&text)));
        (void) snapshot_skipped_count(parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_ json_object *o = NULL;
        SnapshotInfo info = {};

        if (json_parse((const char *) data, size, &o, NULL) < 0)
                return 0;
        if (snapshot_saved_parse(o, &info) >= 0)
                look_at_parts(info.parts);
        if (snapshot_info_parse(o, &info) >= 0)
                (void) look(&info, NULL);
        (void) snapshot_list_each(o, look, NULL);
        (void) snapshot_list_newest(o, &info);
        return 0;
}
