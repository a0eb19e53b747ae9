/* SPDX-License-Identifier: MIT */

/*
 * What a process that runs as a user says of his artifacts, of any bytes: nothing of the kind, or directories that are
 * written and read again the same, and that a set of environments can be made of.
 */

#include "daemon/environment-set.h"
#include "lib/artifact-json.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_set(const ArtifactDirectory *directories, size_t n) {
        _cleanup_(environment_table_freep) EnvironmentTable *builtin = NULL;
        _cleanup_(environment_set_unrefp) EnvironmentSet *set = NULL;
        const NetworkSets sets = {};
        const EnvironmentBroken *b;
        size_t n_broken;

        assert_se(environment_table_new(&builtin) == 0 && environment_table_add_builtin(builtin) == 0);
        assert_se(environment_set_new(builtin, &sets, directories, n, ENVIRONMENT_SCOPE_USER, &set) == 0);
        for (size_t i = 0; i < environment_table_size(builtin); i++)
                assert_se(environment_table_get(environment_set_table(set), i) == environment_table_get(builtin, i));
        assert_se(environment_table_size(environment_set_table(set)) <= ENVIRONMENTS_MAX);
        b = environment_set_broken(set, &n_broken);
        for (size_t i = 0; i < n_broken; i++)
                assert_se(utf8_is_valid(b[i].path, strlen(b[i].path), NULL) &&
                          utf8_is_valid(b[i].reason, strlen(b[i].reason), NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        ArtifactDirectory directories[ARTIFACT_DIRECTORIES_MAX], again[ARTIFACT_DIRECTORIES_MAX];
        _cleanup_json_ json_object *o = NULL, *first = NULL, *second = NULL;
        size_t n, n_again;

        if (json_parse((const char *) data, size, &o, NULL) < 0 || artifact_directories_from_json(o, directories, &n) < 0)
                return 0;

        check_set(directories, n);
        assert_se(artifact_directories_to_json(directories, n, &first) == 0);
        assert_se(artifact_directories_from_json(first, again, &n_again) == 0 && n_again == n);
        assert_se(artifact_directories_to_json(again, n, &second) == 0 && json_object_equal(first, second));
        for (size_t i = 0; i < n; i++) {
                artifact_directory_done(&directories[i]);
                artifact_directory_done(&again[i]);
        }
        return 0;
}
