/* SPDX-License-Identifier: MIT */

/*
 * /init of the initramfs: loads the modules that the root disk needs, mounts it and becomes its systemd. A
 * distribution's own initramfs takes ten times as long under emulation.
 */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULES_MAX 100
#define DISK_WAIT_STEPS 500

static int die(const char *what) {
        perror(what);
        return 1;
}

/* The files' names are numbers, in the order in which the modules depend on each other. */
static void load_modules(void) {
        for (unsigned i = 0; i < MODULES_MAX; i++) {
                char path[32];
                int fd;

                (void) snprintf(path, sizeof(path), "/modules/%02u.ko", i);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0)
                        return;
                if (syscall(SYS_finit_module, fd, "", 0) < 0)
                        perror(path);
                (void) close(fd);
        }
}

/* The disk is found after the driver was loaded, in the kernel's own time. */
static void wait_for_disk(void) {
        for (unsigned i = 0; i < DISK_WAIT_STEPS && access("/dev/vda", F_OK) < 0; i++)
                (void) nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
}

int main(void) {
        load_modules();

        (void) mkdir("/dev", 0755);
        (void) mkdir("/root", 0755);
        if (mount("devtmpfs", "/dev", "devtmpfs", 0, "") < 0)
                return die("devtmpfs");
        wait_for_disk();
        if (mount("/dev/vda", "/root", "ext4", 0, "") < 0)
                return die("/dev/vda");
        if (mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) < 0)
                return die("move /dev");
        if (chdir("/root") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
                return die("switch root");

        (void) execl("/sbin/init", "init", (char *) NULL);
        return die("/sbin/init");
}
