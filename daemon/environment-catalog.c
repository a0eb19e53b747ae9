/* SPDX-License-Identifier: MIT */

/*
 * A change within the same tick of the file system's clock as a reading has the same stamps. So what has changed is
 * read again by every look until one comes that is later than any such tick, and only then are stamps believed. (Linux
 * 6.13 gives a file whose stamps have been looked at a fine one; older ones, and some file systems, do not.)
 */

#include "daemon/environment-catalog.h"

#include "lib/log.h"
#include "lib/text.h"

/* Longer than a tick of any file system: FAT has 2 s. */
#define SETTLE_USEC (2 * USEC_PER_SEC)

/* Of the closures in one directory. */
#define CLOSURES_MAX (16 * MIB)

struct EnvironmentCatalog {
        const EnvironmentTable *configured;
        const NetworkSets *sets;
        const ConfigDirectories *paths;
        ArtifactDirectory directories[CONFIG_DIRECTORIES_MAX]; /* without their texts */
        EnvironmentSet *set;
        bool settled;
        uint64_t changed_at; /* when the present state was first read */
};

/* ---- what is logged ---- */

static bool has_broken(const EnvironmentSet *s, const EnvironmentBroken *wanted) {
        const EnvironmentBroken *b;
        size_t n = 0;

        b = s ? environment_set_broken(s, &n) : NULL;
        for (size_t i = 0; i < n; i++)
                if (streq(b[i].path, wanted->path) && streq(b[i].reason, wanted->reason))
                        return true;
        return false;
}

static bool has_environment(const EnvironmentSet *s, const Environment *wanted) {
        const Environment *e = s ? environment_table_find(environment_set_table(s), wanted->name) : NULL;

        return e && streq_ptr(e->source, wanted->source) && streq_ptr(e->root, wanted->root) &&
                streq_ptr(e->closure_path, wanted->closure_path);
}

/* What of one is not in the other. */
static void log_difference(const EnvironmentSet *from, const EnvironmentSet *to, const char *what) {
        const EnvironmentTable *t = from ? environment_set_table(from) : NULL;

        for (size_t i = 0; t && i < environment_table_size(t); i++) {
                const Environment *e = environment_table_get(t, i);

                if (e->source && !has_environment(to, e))
                        log_info("Environment '%s' %s: %s", e->name, what, e->source);
        }
}

static void log_change(const EnvironmentSet *old, const EnvironmentSet *new) {
        const EnvironmentBroken *b;
        size_t n;

        log_difference(old, new, "is gone");
        log_difference(new, old, "is there");
        b = environment_set_broken(new, &n);
        for (size_t i = 0; i < n; i++)
                if (!has_broken(old, &b[i]))
                        log_warning("No environment is made of '%s': %s.", b[i].path, b[i].reason);
}

/* ---- reading ---- */

static bool catalog_changed(const EnvironmentCatalog *c) {
        for (size_t i = 0; i < c->paths->n_paths; i++)
                if (artifact_directory_changed(&c->directories[i]))
                        return true;
        return false;
}

static void directories_done(ArtifactDirectory *directories) {
        for (size_t i = 0; i < CONFIG_DIRECTORIES_MAX; i++)
                artifact_directory_done(&directories[i]);
}

static int catalog_read(EnvironmentCatalog *c) {
        ArtifactDirectory directories[CONFIG_DIRECTORIES_MAX] = {};
        EnvironmentSet *set = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < c->paths->n_paths; i++)
                r = artifact_directory_read(c->paths->paths[i], CLOSURES_MAX, environment_programs, &directories[i]);
        if (r >= 0)
                r = environment_set_new(c->configured, c->sets, directories, c->paths->n_paths,
                                        ENVIRONMENT_SCOPE_SYSTEM, &set);
        if (r < 0) {
                directories_done(directories);
                return r;
        }

        log_change(c->set, set);
        (void) environment_set_unref(c->set);
        c->set = set;
        directories_done(c->directories);
        memcpy(c->directories, directories, sizeof(c->directories));
        for (size_t i = 0; i < c->paths->n_paths; i++)
                artifact_directory_forget_texts(&c->directories[i]);
        return 0;
}

EnvironmentSet *environment_catalog_look(EnvironmentCatalog *c) {
        const uint64_t now = now_monotonic();
        const bool changed = catalog_changed(c);
        int r;

        if (!changed && c->settled)
                return c->set;
        r = catalog_read(c);
        if (r < 0)
                (void) log_warning_errno(r, "Failed to read the directories of environments, ignoring: %m");
        else if (changed)
                c->changed_at = now;
        c->settled = r >= 0 && now - c->changed_at >= SETTLE_USEC;
        return c->set;
}

int environment_catalog_new(const EnvironmentTable *configured, const NetworkSets *sets,
                            const ConfigDirectories *directories, EnvironmentCatalog **ret) {
        _cleanup_(environment_catalog_freep) EnvironmentCatalog *c = NULL;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return -ENOMEM;
        c->configured = configured;
        c->sets = sets;
        c->paths = directories;
        c->changed_at = now_monotonic();
        r = catalog_read(c);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

EnvironmentCatalog *environment_catalog_free(EnvironmentCatalog *c) {
        if (!c)
                return NULL;

        (void) environment_set_unref(c->set);
        directories_done(c->directories);
        return mfree(c);
}
