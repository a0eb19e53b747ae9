/* SPDX-License-Identifier: MIT */

/* One object: {"directories": [{"path", "reason", "artifacts": [{"path", "reason", "text", …}]}]}. */

#include "artifact-json.h"

#include <errno.h>

#include "text.h"

typedef struct Parsed {
        const char *path, *reason, *closure_path;
        JsonBytes text, closure;
        uint64_t programs;
} Parsed;

static const JsonField artifact_table[] = {
        { "path", JSON_KIND_STRING, offsetof(Parsed, path), JSON_MANDATORY },
        { "reason", JSON_KIND_STRING, offsetof(Parsed, reason) },
        { "text", JSON_KIND_BYTES, offsetof(Parsed, text) },
        { "closure_path", JSON_KIND_STRING, offsetof(Parsed, closure_path) },
        { "closure", JSON_KIND_BYTES, offsetof(Parsed, closure) },
        { "programs", JSON_KIND_UINT, offsetof(Parsed, programs), JSON_MANDATORY },
        {},
};

/* ---- writing ---- */

/* Names of files may be of any bytes; what is shown of them need not be exact, for they are not opened again. */
static int put_path(json_object *o, const char *path) {
        _cleanup_free_ char *repaired = utf8_repair(path);

        return repaired ? json_put_string(o, "path", repaired) : -ENOMEM;
}

static int put_artifact(json_object *array, const Artifact *a) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || put_path(o, a->path) < 0 || json_put_uint(o, "programs", a->programs) < 0 ||
            (a->reason && json_put_string(o, "reason", a->reason) < 0) ||
            (a->text && json_put_bytes(o, "text", a->text, a->text_size) < 0) ||
            (a->closure && json_put_string(o, "closure_path", a->closure_path) < 0) ||
            (a->closure && json_put_bytes(o, "closure", a->closure, a->closure_size) < 0))
                return -ENOMEM;
        return json_array_put(array, TAKE_PTR(o));
}

static int put_directory(json_object *array, const ArtifactDirectory *d) {
        _cleanup_json_ json_object *o = json_object_new_object(), *artifacts = json_object_new_array();

        if (!o || !artifacts || put_path(o, d->path) < 0 ||
            (d->reason && json_put_string(o, "reason", d->reason) < 0))
                return -ENOMEM;
        for (size_t i = 0; i < d->n_artifacts; i++)
                if (put_artifact(artifacts, &d->artifacts[i]) < 0)
                        return -ENOMEM;
        if (json_put_object(o, "artifacts", TAKE_PTR(artifacts)) < 0)
                return -ENOMEM;
        return json_array_put(array, TAKE_PTR(o));
}

int artifact_directories_to_json(const ArtifactDirectory *directories, size_t n, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object(), *array = json_object_new_array();

        if (!o || !array)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (put_directory(array, &directories[i]) < 0)
                        return -ENOMEM;
        if (json_put_object(o, "directories", TAKE_PTR(array)) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(o);
        return 0;
}

/* ---- reading ---- */

static int take_bytes(const JsonBytes *bytes, char **ret, size_t *ret_size) {
        if (!bytes->data)
                return 0;
        *ret = malloc(bytes->size + 1);
        if (!*ret)
                return -ENOMEM;
        memcpy(*ret, bytes->data, bytes->size);
        (*ret)[bytes->size] = '\0';
        *ret_size = bytes->size;
        return 0;
}

static int take_string(const char *s, char **ret) {
        *ret = s ? strdup(s) : NULL;
        return s && !*ret ? -ENOMEM : 0;
}

static int parse_artifact(json_object *o, Artifact *ret) {
        Parsed p = {};
        int r;

        r = json_dispatch(o, artifact_table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        if ((!p.reason && !p.text.data) || p.text.size > ARTIFACT_FILE_MAX || p.closure.size > ARTIFACT_CLOSURE_MAX ||
            p.programs > UINT32_MAX)
                return -EINVAL;

        ret->programs = (unsigned) p.programs;
        r = take_string(p.path, &ret->path);
        if (r >= 0)
                r = take_string(p.reason, &ret->reason);
        if (r >= 0)
                r = take_string(p.closure_path, &ret->closure_path);
        if (r >= 0)
                r = take_bytes(&p.text, &ret->text, &ret->text_size);
        if (r >= 0)
                r = take_bytes(&p.closure, &ret->closure, &ret->closure_size);
        return r;
}

static int parse_directory(json_object *o, ArtifactDirectory *ret) {
        struct {
                const char *path, *reason;
                json_object *artifacts;
        } p = {};
        static const JsonField table[] = {
                { "path", JSON_KIND_STRING, offsetof(typeof(p), path), JSON_MANDATORY },
                { "reason", JSON_KIND_STRING, offsetof(typeof(p), reason) },
                { "artifacts", JSON_KIND_ARRAY, offsetof(typeof(p), artifacts), JSON_MANDATORY },
                {},
        };
        size_t n;
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        n = json_object_array_length(p.artifacts);
        if (n > ARTIFACTS_MAX)
                return -EINVAL;
        r = take_string(p.path, &ret->path);
        if (r >= 0)
                r = take_string(p.reason, &ret->reason);
        if (r < 0 || n == 0)
                return r;

        ret->artifacts = calloc(n, sizeof(Artifact));
        if (!ret->artifacts)
                return -ENOMEM;
        for (; r >= 0 && ret->n_artifacts < n; ret->n_artifacts++)
                r = parse_artifact(json_object_array_get_idx(p.artifacts, ret->n_artifacts),
                                   &ret->artifacts[ret->n_artifacts]);
        return r;
}

int artifact_directories_from_json(json_object *o, ArtifactDirectory *ret, size_t *ret_n) {
        struct {
                json_object *directories;
        } p = {};
        static const JsonField table[] = {
                { "directories", JSON_KIND_ARRAY, offsetof(typeof(p), directories), JSON_MANDATORY },
                {},
        };
        size_t n, i;
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        n = json_object_array_length(p.directories);
        if (n > ARTIFACT_DIRECTORIES_MAX)
                return -EINVAL;

        for (i = 0; r >= 0 && i < n; i++) {
                ret[i] = (ArtifactDirectory){};
                r = parse_directory(json_object_array_get_idx(p.directories, i), &ret[i]);
        }
        if (r < 0) {
                while (i > 0)
                        artifact_directory_done(&ret[--i]);
                return r;
        }
        *ret_n = n;
        return 0;
}
