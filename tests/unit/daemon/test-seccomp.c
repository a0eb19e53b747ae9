/* SPDX-License-Identifier: MIT */

/* Each refused call is made in a child that has the filter, and each must come back with its own error. */

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/seccomp.h"
#include "lib/fd-util.h"

TestSuite(seccomp, .timeout = 20);

/* As bwrap does it: reads the file, then takes the privileges away and loads it. */
static void load_filter(void) {
        static struct sock_filter program[BPF_MAXINSNS];
        int fd = seccomp_filter_new();
        ssize_t n = fd < 0 ? -1 : read(fd, program, sizeof(program));
        struct sock_fprog prog = { .filter = program };

        if (n <= 0 || (size_t) n % sizeof(program[0]) != 0)
                _exit(100);
        prog.len = (unsigned short) ((size_t) n / sizeof(program[0]));
        (void) safe_close(fd);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0)
                _exit(101);
}

/* Runs f in a child with the filter; f's value, or 128 + the signal that ended it. */
static int in_child(int (*f)(const void *), const void *argument) {
        int status;
        pid_t pid = fork();

        cr_assert_geq(pid, 0);
        if (pid == 0) {
                load_filter();
                _exit(f(argument));
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

typedef struct Call {
        const char *name;
        long number;
        int error;              /* 0: the filter lets it pass, whatever the kernel says then */
        long arguments[6];
} Call;

static int make_call(const void *argument) {
        const Call *c = argument;
        const long *a = c->arguments;

        errno = 0;
        if (syscall(c->number, a[0], a[1], a[2], a[3], a[4], a[5]) >= 0)
                return 0;
        return errno;
}

#define CALL(name, error, ...) { #name, SYS_##name, error, { __VA_ARGS__ } }

static const Call refused[] = {
        CALL(ptrace, EPERM, 0), CALL(process_vm_readv, EPERM, 1), CALL(process_vm_writev, EPERM, 1),
        CALL(process_madvise, EPERM, 0), CALL(pidfd_getfd, EPERM, 0), CALL(kcmp, EPERM, 1, 1),
        CALL(move_pages, EPERM, 0), CALL(migrate_pages, EPERM, 0),
        CALL(unshare, EPERM, CLONE_NEWUSER), CALL(unshare, EPERM, CLONE_NEWNET), CALL(unshare, EPERM, 0),
        CALL(setns, EPERM, 0, 0), CALL(mount, EPERM, 0), CALL(umount2, EPERM, 0), CALL(pivot_root, EPERM, 0),
        CALL(chroot, EPERM, (long) "/"), CALL(open_tree, EPERM, AT_FDCWD, (long) "/", 0),
        CALL(move_mount, EPERM, 0), CALL(fsopen, EPERM, (long) "tmpfs", 0), CALL(fsconfig, EPERM, 0),
        CALL(fsmount, EPERM, 0), CALL(fspick, EPERM, AT_FDCWD, (long) "/", 0),
        { "mount_setattr", 442, EPERM, { 0 } },
        CALL(clone3, ENOSYS, 0, 0), CALL(open_by_handle_at, EPERM, AT_FDCWD, 0, 0),
        CALL(bpf, EPERM, 0), CALL(perf_event_open, EPERM, 0), CALL(userfaultfd, EPERM, 0),
        CALL(fanotify_init, EPERM, 0), CALL(fanotify_mark, EPERM, 0),
        CALL(io_uring_setup, ENOSYS, 1, 0), CALL(io_uring_enter, ENOSYS, 0),
        CALL(io_uring_register, ENOSYS, 0),
        CALL(add_key, EPERM, 0), CALL(request_key, EPERM, 0), CALL(keyctl, EPERM, 0, -3, 0),
        CALL(init_module, EPERM, 0), CALL(finit_module, EPERM, 0), CALL(delete_module, EPERM, 0),
        CALL(kexec_load, EPERM, 0), CALL(reboot, EPERM, 0), CALL(swapon, EPERM, 0), CALL(swapoff, EPERM, 0),
        CALL(acct, EPERM, 0), CALL(quotactl, EPERM, 0), { "quotactl_fd", 443, EPERM, { 0 } },
        CALL(syslog, EPERM, 10), CALL(sethostname, EPERM, (long) "x", 1),
        CALL(setdomainname, EPERM, (long) "x", 1),
        CALL(settimeofday, EPERM, 0, 0), CALL(clock_settime, EPERM, 0, 0), CALL(clock_adjtime, EPERM, 0, 0),
        CALL(adjtimex, EPERM, 0), CALL(vhangup, EPERM, 0),

        CALL(clone, EPERM, CLONE_NEWUSER | SIGCHLD), CALL(clone, EPERM, CLONE_NEWNS | SIGCHLD),
        CALL(clone, EPERM, CLONE_NEWPID | SIGCHLD), CALL(clone, EPERM, CLONE_NEWNET | SIGCHLD),
        CALL(clone, EPERM, CLONE_NEWIPC | SIGCHLD), CALL(clone, EPERM, CLONE_NEWUTS | SIGCHLD),
        CALL(clone, EPERM, 0x02000000 | SIGCHLD), CALL(clone, EPERM, (1L << 40) | CLONE_NEWUSER | SIGCHLD),
        CALL(ioctl, EPERM, 0, TIOCSTI, (long) "x"), CALL(ioctl, EPERM, 0, (1L << 32) | TIOCSTI, (long) "x"),
        CALL(ioctl, EPERM, 0, TIOCLINUX, 0), CALL(ioctl, EPERM, 0, TIOCSETD, 0),
        CALL(personality, EPERM, 0x0040000), CALL(personality, EPERM, 0x0400000),

        CALL(socket, EAFNOSUPPORT, AF_PACKET, SOCK_RAW, 0),
        CALL(socket, EAFNOSUPPORT, 38, SOCK_SEQPACKET, 0),
        CALL(socket, EAFNOSUPPORT, 40, SOCK_STREAM, 0), CALL(socket, EAFNOSUPPORT, 31, SOCK_RAW, 0),
        CALL(socket, EAFNOSUPPORT, 44, SOCK_RAW, 0), CALL(socket, EAFNOSUPPORT, AF_KEY, SOCK_RAW, 2),
        CALL(socket, EAFNOSUPPORT, AF_UNSPEC, SOCK_STREAM, 0),
        CALL(socket, EAFNOSUPPORT, 1000, SOCK_STREAM, 0),
        CALL(socket, EAFNOSUPPORT, -1, SOCK_STREAM, 0),
        CALL(socket, EAFNOSUPPORT, (1L << 32) | AF_PACKET, SOCK_RAW),
        CALL(socket, EPROTONOSUPPORT, AF_NETLINK, SOCK_RAW, 12),
        CALL(socketpair, EAFNOSUPPORT, AF_TIPC, 1, 0, 0),
        CALL(socket, ESOCKTNOSUPPORT, AF_INET, SOCK_RAW, 1),
        CALL(socket, ESOCKTNOSUPPORT, AF_INET6, SOCK_RAW, 58),
        CALL(socket, ESOCKTNOSUPPORT, AF_INET, SOCK_SEQPACKET | SOCK_CLOEXEC, 0),
        CALL(socket, ESOCKTNOSUPPORT, AF_INET6, SOCK_DCCP, 33),
        CALL(socket, EPROTONOSUPPORT, AF_INET, SOCK_STREAM, 132),
        CALL(socket, EPROTONOSUPPORT, AF_INET6, SOCK_DGRAM, 136),
        CALL(socket, EPROTONOSUPPORT, AF_INET, SOCK_STREAM, 262),
        CALL(socket, EPROTONOSUPPORT, AF_INET, SOCK_DGRAM, (1L << 32) | 17),

        { "an unassigned number", 511, ENOSYS, { 0 } }, { "a huge number", 0x3fffffff, ENOSYS, { 0 } },
        { "statmount", 457, ENOSYS, { 0 } }, { "listmount", 458, ENOSYS, { 0 } }, { "open_tree_attr", 467, ENOSYS, { 0 } },
#ifdef __x86_64__
        CALL(kexec_file_load, EPERM, 0), CALL(iopl, EPERM, 3), CALL(ioperm, EPERM, 0, 1, 1),
        CALL(modify_ldt, EPERM, 0), CALL(ustat, EPERM, 0), CALL(sysfs, EPERM, 3),
        { "lookup_dcookie", 212, EPERM, { 0 } }, { "uselib", 134, EPERM, { 0 } },
        { "nfsservctl", 180, EPERM, { 0 } }, { "_sysctl", 156, EPERM, { 0 } },
        { "x32 getpid", 0x40000000 | SYS_getpid, ENOSYS, { 0 } },
        { "x32 ptrace", 0x40000000 | 521, ENOSYS, { 0 } },
#endif
};

Test(seccomp, refused) {
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                const Call *c = &refused[i];
                int error = in_child(make_call, c);

                cr_expect_eq(error, c->error, "%s(%#lx, %#lx, %#lx): %d instead of %d", c->name,
                             c->arguments[0], c->arguments[1], c->arguments[2], error, c->error);
        }
}

/* What the kernel answers without the filter it answers with it. */
static const Call allowed[] = {
        CALL(getpid, 0), CALL(name_to_handle_at, 0, AT_FDCWD, (long) "/"), CALL(get_mempolicy, 0, 0),
        CALL(personality, 0, 0), CALL(ioctl, 0, 0, FIONREAD, 0), CALL(ioctl, 0, 0, TIOCGWINSZ, 0),
        CALL(socket, 0, AF_UNIX, SOCK_STREAM, 0), CALL(socket, 0, AF_UNIX, SOCK_SEQPACKET, 0),
        CALL(socket, 0, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP),
        CALL(socket, 0, AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0),
        CALL(socket, 0, AF_INET, SOCK_DGRAM, IPPROTO_UDP),
        CALL(socket, 0, AF_NETLINK, SOCK_RAW, 0), CALL(pidfd_open, 0, 1, 0),
        CALL(memfd_create, 0, (long) "x", 0),
        CALL(kill, 0, 0, 0), CALL(prctl, 0, PR_GET_DUMPABLE), CALL(seccomp, 0, 99, 0, 0),
};

Test(seccomp, allowed) {
        for (size_t i = 0; i < ELEMENTSOF(allowed); i++) {
                const Call *c = &allowed[i];

                cr_expect_eq(in_child(make_call, c), make_call(c), "%s", c->name);
        }
}

static void *thread_main(void *argument) {
        *(int *) argument = 7;
        return NULL;
}

static int use_processes(const void *argument) {
        pthread_t thread;
        int value = 0, status;
        pid_t pid;

        if (pthread_create(&thread, NULL, thread_main, &value) != 0 || pthread_join(thread, NULL) != 0 ||
            value != 7)
                return 1;

        pid = fork();
        if (pid == 0) {
                (void) execl("/bin/sh", "sh", "-c", "exit 5", NULL);
                _exit(6);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5)
                return 2;
        return 0;
}

Test(seccomp, threads_and_children_work) {
        cr_assert_eq(in_child(use_processes, NULL), 0);
}

#ifdef __x86_64__
/* getpid of i386, whose number is another call of x86-64 and whose filter would be another. */
static int call_i386(const void *argument) {
        long r;

        (void) signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own handler, which exits */
        __asm__ volatile("int $0x80" : "=a"(r) : "0"(20L) : "memory", "r8", "r9", "r10", "r11");
        return r < 0 ? (int) -r : 0;
}

Test(seccomp, other_architecture) {
        int r = in_child(call_i386, NULL);

        /* A kernel without the i386 calls ends the process. */
        cr_assert(r == ENOSYS || r == 128 + SIGSEGV, "%d", r);
}
#endif

Test(seccomp, file) {
        int fd = seccomp_filter_new();
        struct stat st;

        cr_assert_geq(fd, 0);
        cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        cr_assert_eq(lseek(fd, 0, SEEK_CUR), 0);
        cr_assert_eq(fstat(fd, &st), 0);
        cr_assert_eq((size_t) st.st_size % sizeof(struct sock_filter), 0);
        cr_assert_eq(write(fd, "x", 1), -1, "it is sealed");
        (void) safe_close(fd);
}
