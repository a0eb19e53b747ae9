/* SPDX-License-Identifier: MIT */

/*
 * What bubblewrap's --dev would make: six devices of the host, pseudo-terminals of the jail's own, links. It would
 * bind the devices one by one and read the table of mounts for each, which has all paths of the store in it. That
 * took more time than mounting them.
 */

#include "closure/devices.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "closure/view.h"
#include "lib/fd-util.h"
#include "lib/jail-place.h"

static const char *const device_table[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const char *const directory_table[] = { "pts", "shm" };

static const struct {
        const char *name;
        const char *target;
} link_table[] = {
        { "stdin", "/proc/self/fd/0" },
        { "stdout", "/proc/self/fd/1" },
        { "stderr", "/proc/self/fd/2" },
        { "fd", "/proc/self/fd" },
        { "core", "/proc/kcore" },
        { "ptmx", "pts/ptmx" },
};

int devices_prepare(void) {
        _cleanup_close_ int view = -EBADF;

        if (mkdir(JAIL_PLACE_DEV, 0755) < 0)
                return view_fail(errno, "make " JAIL_PLACE_DEV);
        view = open(JAIL_PLACE_DEV, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (view < 0)
                return view_fail(errno, "open " JAIL_PLACE_DEV);

        for (size_t i = 0; i < ELEMENTSOF(device_table); i++) {
                _cleanup_close_ int fd = -EBADF;

                fd = openat(view, device_table[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
                if (fd < 0)
                        return view_fail(errno, "make %s/%s", JAIL_PLACE_DEV, device_table[i]);
        }
        for (size_t i = 0; i < ELEMENTSOF(directory_table); i++)
                if (mkdirat(view, directory_table[i], 0755) < 0)
                        return view_fail(errno, "make %s/%s", JAIL_PLACE_DEV, directory_table[i]);
        for (size_t i = 0; i < ELEMENTSOF(link_table); i++)
                if (symlinkat(link_table[i].target, view, link_table[i].name) < 0)
                        return view_fail(errno, "make %s/%s", JAIL_PLACE_DEV, link_table[i].name);
        return 0;
}

int devices_show(void) {
        _cleanup_close_ int host = -EBADF, view = -EBADF;

        host = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
        view = open(JAIL_PLACE_DEV, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (host < 0 || view < 0)
                return view_fail(errno, "open /dev and " JAIL_PLACE_DEV);

        for (size_t i = 0; i < ELEMENTSOF(device_table); i++) {
                _cleanup_close_ int tree = -EBADF;

                tree = open_tree(host, device_table[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
                if (tree < 0 || move_mount(tree, "", view, device_table[i], MOVE_MOUNT_F_EMPTY_PATH) < 0)
                        return view_fail(errno, "show /dev/%s", device_table[i]);
        }
        if (mount("devpts", JAIL_PLACE_DEV "/pts", "devpts", MS_NOSUID | MS_NOEXEC,
                  "newinstance,ptmxmode=0666,mode=620") < 0)
                return view_fail(errno, "mount devpts");
        return 0;
}
