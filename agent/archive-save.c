/* SPDX-License-Identifier: MIT */

/*
 * libarchive walks the tree and finds the holes. Names are written as they are (hdrcharset=BINARY), because in a
 * static program iconv(3) would load modules of the jail's. Owners and all times but one are left out, which
 * spares most files an extended header.
 */

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/archive.h"
#include "agent/spool.h"
#include "lib/fd-util.h"

#define BLOCK_SIZE (64 * KIB)
/* What stands for a hole; the pages are never touched, since the writer leaves holes out. */
#define HOLE_SIZE (64 * MIB)

static inline void archive_read_freep(struct archive **a) {
        (void) archive_read_free(*a);
}

static inline void archive_write_freep(struct archive **a) {
        (void) archive_write_free(*a);
}

typedef struct Saving {
        int fd;
        struct archive *disk, *tar;
        struct archive_entry_linkresolver *links;
        const char *hole;
        PartReport *report;
} Saving;

static const char *entry_name(struct archive_entry *e) {
        const char *name = archive_entry_pathname(e);

        if (!name)
                return "";
        return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

static la_ssize_t on_write(struct archive *a, void *userdata, const void *data, size_t size) {
        const Saving *s = userdata;
        int r = write_full(s->fd, data, size);

        if (r < 0) {
                archive_set_error(a, -r, "%s", strerrordesc_np(-r));
                return -1;
        }
        return (la_ssize_t) size;
}

static void skip_kind(Saving *s, struct archive_entry *e) {
        mode_t type = archive_entry_filetype(e);

        part_report_skip(s->report, entry_name(e),
                         type == AE_IFSOCK ? "a socket" : type == AE_IFIFO ? "a pipe" : "a device");
}

/* Asked before anything of an entry is opened. */
static int on_entry(struct archive *a, void *userdata, struct archive_entry *e) {
        Saving *s = userdata;

        switch (archive_entry_filetype(e)) {
        case AE_IFREG:
                return !spool_is_name(entry_name(e));
        case AE_IFDIR:
        case AE_IFLNK:
                return 1;
        default:
                skip_kind(s, e);
                return 0;
        }
}

static void entry_forget(struct archive_entry *e) {
        archive_entry_set_uid(e, 0);
        archive_entry_set_gid(e, 0);
        archive_entry_set_uname(e, NULL);
        archive_entry_set_gname(e, NULL);
        archive_entry_set_perm(e, archive_entry_perm(e) & 0777);
        archive_entry_unset_atime(e);
        archive_entry_unset_ctime(e);
        archive_entry_unset_birthtime(e);
}

static int save_zeros(Saving *s, int64_t n) {
        while (n > 0) {
                la_ssize_t k = archive_write_data(s->tar, s->hole, (size_t) MIN(n, (int64_t) HOLE_SIZE));

                if (k <= 0)
                        return k < 0 ? -EIO : 0;
                n -= k;
        }
        return 0;
}

/* A file may shrink (the rest is then zeros) or grow (it is cut) meanwhile: the archive keeps its form. */
static int save_data(Saving *s, const char *name) {
        int64_t done = 0, offset;
        const void *data;
        size_t size;
        int r;

        while ((r = archive_read_data_block(s->disk, &data, &size, &offset)) == ARCHIVE_OK) {
                la_ssize_t n;

                if (offset > done && save_zeros(s, offset - done) < 0)
                        return -EIO;
                n = archive_write_data(s->tar, data, size);
                if (n < 0)
                        return -EIO;
                if ((size_t) n < size)
                        break;
                done = offset + n;
        }

        if (r != ARCHIVE_OK && r != ARCHIVE_EOF)
                part_report_skip(s->report, name, "it could not be read to its end");
        return 0;
}

static int save_entry(Saving *s, struct archive_entry *e) {
        const char *name = entry_name(e);
        struct archive_entry *later = NULL;
        int r;

        if (!*name || streq(name, "."))
                return 0;

        entry_forget(e);
        archive_entry_linkify(s->links, &e, &later);
        r = archive_write_header(s->tar, e);
        if (r == ARCHIVE_FATAL)
                return -EIO;
        if (r == ARCHIVE_FAILED) {
                part_report_skip(s->report, name, archive_error_string(s->tar));
                return 0;
        }

        return archive_entry_size(e) > 0 ? save_data(s, name) : 0;
}

static int save_next(Saving *s, struct archive_entry *e) {
        int r;

        archive_entry_clear(e);
        r = archive_read_next_header2(s->disk, e);
        if (r == ARCHIVE_EOF)
                return 0;
        if (r == ARCHIVE_FATAL) {
                part_report_fail(s->report, "the workspace cannot be read: %s", archive_error_string(s->disk));
                return 0;
        }
        if (r < ARCHIVE_WARN) {
                part_report_skip(s->report, entry_name(e), strerrordesc_np(archive_errno(s->disk)));
                return 1;
        }

        if (archive_read_disk_can_descend(s->disk))
                (void) archive_read_disk_descend(s->disk);
        r = save_entry(s, e);
        return r < 0 ? r : 1;
}

static int save_all(Saving *s) {
        struct archive_entry *e = archive_entry_new2(s->disk);
        int r;

        if (!e)
                return -ENOMEM;

        while ((r = save_next(s, e)) > 0)
                ;
        archive_entry_free(e);
        return r;
}

static int open_both(Saving *s) {
        if (archive_read_disk_set_symlink_physical(s->disk) < ARCHIVE_WARN ||
            archive_read_disk_set_behavior(s->disk, ARCHIVE_READDISK_NO_TRAVERSE_MOUNTS | ARCHIVE_READDISK_NO_ACL |
                                           ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_FFLAGS) < ARCHIVE_WARN ||
            archive_read_disk_set_metadata_filter_callback(s->disk, on_entry, s) < ARCHIVE_WARN ||
            archive_write_set_format_pax_restricted(s->tar) < ARCHIVE_WARN ||
            archive_write_set_format_option(s->tar, "pax", "hdrcharset", "BINARY") < ARCHIVE_WARN ||
            archive_write_set_bytes_per_block(s->tar, BLOCK_SIZE) < ARCHIVE_WARN ||
            archive_write_set_bytes_in_last_block(s->tar, 1) < ARCHIVE_WARN ||
            archive_write_open(s->tar, s, NULL, on_write, NULL) < ARCHIVE_WARN)
                return -EIO;

        if (archive_read_disk_open(s->disk, ".") < ARCHIVE_WARN)
                part_report_fail(s->report, "the workspace cannot be read: %s", archive_error_string(s->disk));
        return 0;
}

int archive_save(int fd, PartReport *report) {
        _cleanup_(archive_read_freep) struct archive *disk = archive_read_disk_new();
        _cleanup_(archive_write_freep) struct archive *tar = archive_write_new();
        Saving s = { .fd = fd, .disk = disk, .tar = tar, .report = report };
        int r;

        s.links = archive_entry_linkresolver_new();
        s.hole = mmap(NULL, HOLE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (!disk || !tar || !s.links || s.hole == MAP_FAILED)
                r = -ENOMEM;
        else {
                archive_entry_linkresolver_set_strategy(s.links, ARCHIVE_FORMAT_TAR_PAX_RESTRICTED);
                r = open_both(&s);
                if (r >= 0 && part_report_is_ok(report))
                        r = save_all(&s);
                if (r >= 0 && archive_write_close(tar) < ARCHIVE_WARN)
                        r = -EIO;
        }

        if (s.hole && s.hole != MAP_FAILED)
                (void) munmap((void *) s.hole, HOLE_SIZE);
        if (s.links)
                archive_entry_linkresolver_free(s.links);
        return r;
}
