/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What sandbox-snapshot says about snapshots, typed. It is our own program, but what it repeats was said in a jail, or
 * read from a disk. Strings are borrowed from the JSON.
 */

#include "lib/buffer.h"
#include "lib/json.h"

#define SNAPSHOT_ID_LENGTH 24U /* 20261128T102500-0123abcd */
#define SNAPSHOT_SKIPPED_MAX 400U /* entries that are passed on */

typedef struct SnapshotInfo {
        const char *id;
        uint64_t time_usec; /* CLOCK_REALTIME */
        uint64_t bytes;
        const char *reason;
        const char *session; /* its id */
        const char *name, *project, *environment;
        uint64_t turns;
        json_object *parts; /* an array */
} SnapshotInfo;

bool snapshot_id_is_valid(const char *id);

/* One of a list, or what was loaded. -EINVAL. */
int snapshot_info_parse(json_object *o, SnapshotInfo *ret);
/* What a save answers: only id, bytes and parts are set. */
int snapshot_saved_parse(json_object *o, SnapshotInfo *ret);

/* The members of a list that can be understood, in its order, to f. */
int snapshot_list_each(json_object *list, int (*f)(const SnapshotInfo *info, void *userdata), void *userdata);
/* The newest of a list; false: it is empty. */
bool snapshot_list_newest(json_object *list, SnapshotInfo *ret);

/* What parts have left out, as objects {part, name, why}; name is null for a whole part. */
int snapshot_skipped(json_object *parts, json_object **ret);
/* How much the parts of a list's entry have left out: it has numbers in place of names. */
uint64_t snapshot_skipped_count(json_object *parts);
/* What parts have left out as "sock (socket), python (dill is missing)", at most n of them; empty: nothing was. */
int snapshot_skipped_text(json_object *parts, size_t n, Buffer *b);

/* What the agent says of the parts that it restored; NULL: nothing. Borrowed. */
json_object *snapshot_restored_parts(json_object *report);
/* Sentences for whoever uses a session that was restored, by what load answered and the agent reported (or NULL). */
int snapshot_describe_restored(json_object *loaded, const SnapshotInfo *info, json_object *report, char **ret);

/* "3 s", "5 min", "2 h", "4 days". */
void snapshot_age(uint64_t usec, char *ret, size_t size);
