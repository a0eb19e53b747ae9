/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/artifact-json.h"

TestSuite(artifact_json, .timeout = 10);

Test(artifact_json, there_and_back) {
        Artifact artifacts[] = {
                { .path = (char *) "/d/a", .text = (char *) "{}", .text_size = 2, .closure_path = (char *) "/d/a/p",
                  .closure = (char *) "/s/x\n", .closure_size = 5, .programs = 5 },
                { .path = (char *) "/d/\xff", .reason = (char *) "it is not there" },
        };
        const ArtifactDirectory written[] = {
                { .path = (char *) "/d", .artifacts = artifacts, .n_artifacts = 2 },
                { .path = (char *) "/e", .reason = (char *) "odd" },
        };
        ArtifactDirectory read[ARTIFACT_DIRECTORIES_MAX];
        _cleanup_json_ json_object *o = NULL;
        size_t n = 0;

        cr_assert_eq(artifact_directories_to_json(written, 2, &o), 0);
        cr_assert_eq(artifact_directories_from_json(o, read, &n), 0);
        cr_assert_eq(n, 2);
        cr_assert_str_eq(read[0].path, "/d");
        cr_assert_null(read[0].reason);
        cr_assert_eq(read[0].n_artifacts, 2);
        cr_assert_str_eq(read[0].artifacts[0].text, "{}");
        cr_assert_eq(read[0].artifacts[0].text_size, 2);
        cr_assert_str_eq(read[0].artifacts[0].closure, "/s/x\n");
        cr_assert_str_eq(read[0].artifacts[0].closure_path, "/d/a/p");
        cr_assert_eq(read[0].artifacts[0].programs, 5);
        cr_assert_str_eq(read[0].artifacts[1].path, "/d/\xef\xbf\xbd");
        cr_assert_str_eq(read[0].artifacts[1].reason, "it is not there");
        cr_assert_null(read[0].artifacts[1].text);
        cr_assert_str_eq(read[1].reason, "odd");
        for (size_t i = 0; i < n; i++)
                artifact_directory_done(&read[i]);
}

Test(artifact_json, refused) {
        static const char *const texts[] = {
                "[]", "{}", "{\"directories\":{}}", "{\"directories\":[1]}", "{\"directories\":[{\"path\":\"/d\"}]}",
                "{\"directories\":[],\"more\":1}",
                "{\"directories\":[{\"path\":\"/d\",\"artifacts\":[{\"path\":\"/x\",\"programs\":0}]}]}",
                "{\"directories\":[{\"path\":\"/d\",\"artifacts\":[{\"path\":\"/x\",\"text\":\"{}\"}]}]}",
                "{\"directories\":[{\"path\":\"/d\",\"artifacts\":[{\"path\":\"/x\",\"text\":\"{}\",\"programs\":4294967296}]}]}",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                ArtifactDirectory read[ARTIFACT_DIRECTORIES_MAX];
                _cleanup_json_ json_object *o = NULL;
                size_t n;

                cr_assert_eq(json_parse(texts[i], strlen(texts[i]), &o, NULL), 0);
                cr_assert_eq(artifact_directories_from_json(o, read, &n), -EINVAL, "%s", texts[i]);
        }
}
