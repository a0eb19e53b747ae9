/* SPDX-License-Identifier: MIT */

/*
 * The archive comes from the host's disk and was once made in a jail: nothing in it is believed. libarchive reads
 * tar only, and is told not to leave the directory in any way; what may be made is decided here.
 */

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>

#include "agent/archive.h"

#define BLOCK_SIZE (64 * KIB)
#define EXTRACT_FLAGS (ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_SYMLINKS |  \
                       ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS)

static inline void archive_read_freep(struct archive **a) {
        (void) archive_read_free(*a);
}

static inline void archive_write_freep(struct archive **a) {
        (void) archive_write_free(*a);
}

static const char *error_text(struct archive *a) {
        const char *s = archive_error_string(a);

        return s ? s : "unknown";
}

/* Whether it is of a kind that archive_save() writes. */
static bool entry_is_ours(struct archive_entry *e) {
        mode_t type = archive_entry_filetype(e);

        return archive_entry_hardlink(e) || type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK;
}

/* The file system refused, of which libarchive makes no more than a warning where it is write(2) that failed. Only a
 * full one makes the rest pointless. False: it is. */
static bool disk_failed(struct archive *disk, const char *name, PartReport *report) {
        if (archive_errno(disk) == ENOSPC || archive_errno(disk) == EDQUOT) {
                part_report_fail(report, "the workspace is full; a larger one is needed for this snapshot");
                return false;
        }

        part_report_skip(report, name, error_text(disk));
        return true;
}

/* True: go on with the next one. */
static bool restore_data(struct archive *tar, struct archive *disk, const char *name, PartReport *report) {
        const void *data;
        int64_t offset;
        size_t size;
        int r;

        while ((r = archive_read_data_block(tar, &data, &size, &offset)) == ARCHIVE_OK)
                if (archive_write_data_block(disk, data, size, offset) < ARCHIVE_OK)
                        return disk_failed(disk, name, report);

        if (r == ARCHIVE_FATAL) {
                part_report_fail(report, "the archive is damaged: %s", error_text(tar));
                return false;
        }
        if (r != ARCHIVE_EOF)
                part_report_skip(report, name, error_text(tar));
        return true;
}

static bool restore_entry(struct archive *tar, struct archive *disk, struct archive_entry *e, PartReport *report) {
        const char *name = archive_entry_pathname(e);

        if (!name || !*name) {
                part_report_skip(report, "?", "it has no name");
                return true;
        }
        if (!entry_is_ours(e)) {
                part_report_skip(report, name, "neither a file nor a directory nor a link");
                return true;
        }

        archive_entry_set_perm(e, archive_entry_perm(e) & 0777);
        if (archive_write_header(disk, e) < ARCHIVE_OK)
                return disk_failed(disk, name, report);
        if (archive_entry_size(e) > 0 && !restore_data(tar, disk, name, report))
                return false;
        return archive_write_finish_entry(disk) == ARCHIVE_OK || disk_failed(disk, name, report);
}

static void restore_all(struct archive *tar, struct archive *disk, PartReport *report) {
        struct archive_entry *e;
        int r;

        do {
                r = archive_read_next_header(tar, &e);
                if (r == ARCHIVE_EOF)
                        return;
        } while (r >= ARCHIVE_WARN && restore_entry(tar, disk, e, report));

        if (r < ARCHIVE_WARN)
                part_report_fail(report, "the archive is damaged: %s", error_text(tar));
}

void archive_restore(int fd, PartReport *report) {
        _cleanup_(archive_read_freep) struct archive *tar = archive_read_new();
        _cleanup_(archive_write_freep) struct archive *disk = archive_write_disk_new();

        if (!tar || !disk || archive_read_support_format_tar(tar) < ARCHIVE_WARN ||
            archive_write_disk_set_options(disk, EXTRACT_FLAGS) < ARCHIVE_WARN) {
                part_report_fail(report, "out of memory");
                return;
        }

        if (archive_read_open_fd(tar, fd, BLOCK_SIZE) < ARCHIVE_WARN) {
                part_report_fail(report, "the archive is damaged: %s", error_text(tar));
                return;
        }

        restore_all(tar, disk, report);
        /* Permissions and times of directories come last. */
        if (archive_write_close(disk) < ARCHIVE_OK)
                part_report_skip(report, ".", error_text(disk));
}
