/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Directories and files of the store: always below a descriptor, never through a symbolic link, and only what
 * belongs to this user alone.
 *
 *     ROOT/u<uid>/<key>/<id>/          a snapshot
 *     ROOT/u<uid>/<key>/.new-<id>/     one that is being written, by the holder of the key directory's lock
 *     ROOT/u<uid>/<key>/.old-<id>/     one that is being removed
 *     ROOT/u<uid>/<key>/closed         the session was ended by hand
 *
 * The key directory's lock is held by who writes into it, the user directory's by who changes which snapshots
 * there are; the key's is taken first.
 */

#include "lib/fd-util.h"
#include "snapshot/id.h"
#include "snapshot/options.h"

#define CLOSED_FILE "closed"
#define TEMPORARY_PREFIX ".new-"
#define REMOVED_PREFIX ".old-"
#define TEMPORARY_SIZE (sizeof(TEMPORARY_PREFIX) + ID_LENGTH)

/* A descriptor, or -errno: -ENOENT (without create), -EPERM when it is somebody else's or others may write to it. */
int directory_open_root(const char *path, bool create);
int directory_open(int parent, const char *name, bool create);
int directory_open_user(int root, uid_t uid, bool create);

/* A regular file of ours for reading, and its size. -ELOOP, -ENOENT, -EPERM … */
int directory_open_file(int parent, const char *name, uint64_t *ret_size);

/* flock(2): -EBUSY after some seconds, -ECANCELED. Gone with the descriptor. */
int directory_lock(int fd);
bool directory_try_lock(int fd);

/* Opens, makes and locks a key's directory, also when somebody removes it in between. */
int directory_open_locked(int user, const char *key);

/* The names in a directory that pass, ascending; free() the array. At most DIRECTORY_NAMES_MAX (-EFBIG). */
#define DIRECTORY_NAMES_MAX 100000U
#define DIRECTORY_NAME_SIZE 40U /* longer names are none of ours */
typedef char DirectoryName[DIRECTORY_NAME_SIZE];
int directory_names(int fd, bool (*passes)(const char *name), DirectoryName **ret, size_t *ret_n);

/* Removes a snapshot; it is out of sight before the first of its files goes. -ENOENT: somebody else did. */
int directory_remove(int key, const char *id);
/* Removes a directory with the files in it, or whatever stands in its place. */
int directory_remove_tree(int parent, const char *name);
/* What killed processes left. The lock is held. */
int directory_remove_leftovers(int key);
