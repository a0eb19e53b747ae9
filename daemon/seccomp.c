/* SPDX-License-Identifier: MIT */

/*
 * The filter is a list of what is refused, each row with its reason, over a default of allow: a jail has no
 * capabilities and its own namespaces, so the kernel refuses most of this anyway, and the filter is there
 * for the case that the kernel is wrong. Calls newer than the list are unknown to it and answer ENOSYS,
 * which programs take for an older kernel; so do other architectures' calls. Allowed on purpose: the NUMA
 * calls on the caller's own memory (numeric libraries probe them), name_to_handle_at (its counterpart is
 * refused), seccomp and landlock (they only take away).
 */

#include "daemon/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "lib/confine.h"
#include "lib/fd-util.h"

/* Higher than any call number that is in use or will be soon. */
#define NUMBERS_MAX 1024

/* Refused whatever the arguments are. A name that libseccomp does not know is newer than it. */
static const struct {
        const char *name;
        int error;
} call_table[] = {
        /* Other processes' memory and descriptors: pid 1 holds the socket to the daemon. */
        { "ptrace", EPERM },
        { "process_vm_readv", EPERM },
        { "process_vm_writev", EPERM },
        { "process_madvise", EPERM },
        { "pidfd_getfd", EPERM },
        { "kcmp", EPERM },
        { "move_pages", EPERM },
        { "migrate_pages", EPERM },

        /* A new user namespace gives all capabilities over new mounts, nets and so on: most of the kernel
         * that only root reaches otherwise. */
        { "unshare", EPERM },
        { "setns", EPERM },
        { "mount", EPERM },
        { "umount", EPERM },
        { "umount2", EPERM },
        { "pivot_root", EPERM },
        { "chroot", EPERM },
        { "open_tree", EPERM },
        { "move_mount", EPERM },
        { "fsopen", EPERM },
        { "fsconfig", EPERM },
        { "fsmount", EPERM },
        { "fspick", EPERM },
        { "mount_setattr", EPERM },
        /* Newer than libseccomp 2.5, which makes them unknown calls; a newer one is told to do the same. */
        { "open_tree_attr", ENOSYS },
        { "listmount", ENOSYS },
        { "statmount", ENOSYS },
        /* Its flags are in memory, out of a filter's sight. C libraries fall back to clone. */
        { "clone3", ENOSYS },

        /* Opens by inode number what no path leads to (the "shocker" escape). */
        { "open_by_handle_at", EPERM },

        /* Programs in the kernel, and hooks into it. */
        { "bpf", EPERM },
        { "perf_event_open", EPERM },
        { "userfaultfd", EPERM },       /* stops the kernel in the middle of a copy: races are won with it */
        { "fanotify_init", EPERM },
        { "fanotify_mark", EPERM },
        { "lookup_dcookie", EPERM },
        /* System calls past this filter. ENOSYS is what makes users of it fall back. */
        { "io_uring_setup", ENOSYS },
        { "io_uring_enter", ENOSYS },
        { "io_uring_register", ENOSYS },

        /* Keyrings belong to the user outside, not to the namespace. */
        { "add_key", EPERM },
        { "request_key", EPERM },
        { "keyctl", EPERM },

        /* The machine as a whole. */
        { "init_module", EPERM },
        { "finit_module", EPERM },
        { "delete_module", EPERM },
        { "create_module", EPERM },
        { "query_module", EPERM },
        { "get_kernel_syms", EPERM },
        { "kexec_load", EPERM },
        { "kexec_file_load", EPERM },
        { "reboot", EPERM },
        { "swapon", EPERM },
        { "swapoff", EPERM },
        { "acct", EPERM },
        { "quotactl", EPERM },
        { "quotactl_fd", EPERM },
        { "syslog", EPERM },
        { "sethostname", EPERM },
        { "setdomainname", EPERM },
        { "settimeofday", EPERM },
        { "stime", EPERM },
        { "clock_settime", EPERM },
        { "clock_settime64", EPERM },
        { "clock_adjtime", EPERM },
        { "clock_adjtime64", EPERM },
        { "adjtimex", EPERM },
        { "vhangup", EPERM },
        { "nfsservctl", EPERM },

        /* Relics of interest to attackers alone. */
        { "iopl", EPERM },
        { "ioperm", EPERM },
        { "modify_ldt", EPERM },
        { "vm86", EPERM },
        { "vm86old", EPERM },
        { "uselib", EPERM },
        { "ustat", EPERM },
        { "sysfs", EPERM },
        { "_sysctl", EPERM },
};

#define ANY_NAMESPACE(flag) 1, { { 0, SCMP_CMP_MASKED_EQ, (flag), (flag) } }
/* The kernel takes 32 bits of a command, so the rest must not count (CVE-2019-10063). */
#define IOCTL(command) 1, { { 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, (command) } }
#define FAMILY(family) 1, { { 0, SCMP_CMP_EQ, (family) } }
#define INET_TYPE(family, type) 2, { { 0, SCMP_CMP_EQ, (family) }, { 1, SCMP_CMP_MASKED_EQ, 0xf, (type) } }
#define INET_PROTOCOLS_ABOVE(family, protocol) \
        2, { { 0, SCMP_CMP_EQ, (family) }, { 2, SCMP_CMP_GT, (protocol) } }

/* Refused for some arguments. Comparisons are of all 64 bits, so that none but the expected value passes. */
static const struct {
        int call;
        int error;
        unsigned n_args;
        struct scmp_arg_cmp args[2];
} argument_table[] = {
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWUSER) },
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWNS) },
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWPID) },
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWNET) },
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWIPC) },
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWUTS) },
        { SCMP_SYS(clone), EPERM, ANY_NAMESPACE(CLONE_NEWCGROUP) },

        { SCMP_SYS(ioctl), EPERM, IOCTL(TIOCSTI) },     /* types into the terminal */
        { SCMP_SYS(ioctl), EPERM, IOCTL(TIOCLINUX) },   /* pastes into a console */
        { SCMP_SYS(ioctl), EPERM, IOCTL(TIOCSETD) },    /* loads line disciplines, rarely tested modules */

        /* Anything but the domain of Linux switches mitigations off, such as address space randomisation. */
        { SCMP_SYS(personality), EPERM, 1, { { 0, SCMP_CMP_NE, 0 } } },

        /* Families: Unix, IPv4, IPv6 and routing netlink are left. The others are protocols that few
         * machines use and that any socket() call loads; vsock even leads out of the network namespace. */
        { SCMP_SYS(socket), EAFNOSUPPORT, 1, { { 0, SCMP_CMP_GT, AF_NETLINK } } },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_UNSPEC) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_AX25) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_IPX) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_APPLETALK) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_NETROM) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_BRIDGE) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_ATMPVC) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_X25) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_ROSE) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_DECnet) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_NETBEUI) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_SECURITY) },
        { SCMP_SYS(socket), EAFNOSUPPORT, FAMILY(AF_KEY) },
        { SCMP_SYS(socketpair), EAFNOSUPPORT, 1, { { 0, SCMP_CMP_NE, AF_UNIX } } },
        { SCMP_SYS(socket), EPROTONOSUPPORT,
          2, { { 0, SCMP_CMP_EQ, AF_NETLINK }, { 2, SCMP_CMP_NE, /* NETLINK_ROUTE */ 0 } } },

        /* The same of IP: TCP, UDP and ping are left. */
        { SCMP_SYS(socket), ESOCKTNOSUPPORT, INET_TYPE(AF_INET, SOCK_RAW) },
        { SCMP_SYS(socket), ESOCKTNOSUPPORT, INET_TYPE(AF_INET, SOCK_SEQPACKET) },
        { SCMP_SYS(socket), ESOCKTNOSUPPORT, INET_TYPE(AF_INET, SOCK_DCCP) },
        { SCMP_SYS(socket), ESOCKTNOSUPPORT, INET_TYPE(AF_INET6, SOCK_RAW) },
        { SCMP_SYS(socket), ESOCKTNOSUPPORT, INET_TYPE(AF_INET6, SOCK_SEQPACKET) },
        { SCMP_SYS(socket), ESOCKTNOSUPPORT, INET_TYPE(AF_INET6, SOCK_DCCP) },
        { SCMP_SYS(socket), EPROTONOSUPPORT, INET_PROTOCOLS_ABOVE(AF_INET, IPPROTO_ICMPV6) },
        { SCMP_SYS(socket), EPROTONOSUPPORT, INET_PROTOCOLS_ABOVE(AF_INET6, IPPROTO_ICMPV6) },
};

static int add_rules(scmp_filter_ctx filter) {
        int r;

        for (size_t i = 0; i < ELEMENTSOF(call_table); i++) {
                int number = seccomp_syscall_resolve_name(call_table[i].name);

                if (number == __NR_SCMP_ERROR)
                        continue;
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(call_table[i].error), number, 0);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < ELEMENTSOF(argument_table); i++) {
                r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(argument_table[i].error),
                                           argument_table[i].call, argument_table[i].n_args,
                                           argument_table[i].args);
                if (r < 0)
                        return r;
        }

        return 0;
}

/* Appends the program as libseccomp writes it, which it does to a file only. */
static int append_rules(Buffer *program) {
        _cleanup_(seccomp_releasep) scmp_filter_ctx filter = NULL;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        char *place;
        int r;

        filter = seccomp_init(SCMP_ACT_ALLOW);
        if (!filter)
                return -ENOMEM;
        /* Not killed: an i386 program that probes its kernel may go on and say so. */
        r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
        if (r >= 0)
                r = add_rules(filter);
        if (r < 0)
                return r;

        fd = memfd_create("seccomp-rules", MFD_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = seccomp_export_bpf(filter, fd);
        if (r < 0)
                return r;
        if (fstat(fd, &st) < 0)
                return -errno;

        r = buffer_reserve(program, (size_t) st.st_size, &place);
        if (r < 0)
                return r;
        if (pread(fd, place, (size_t) st.st_size, 0) != st.st_size)
                return -EIO;
        buffer_commit(program, (size_t) st.st_size);
        return 0;
}

/* The highest call number that libseccomp has a name for. */
static unsigned highest_number(void) {
        unsigned highest = 0;

        for (int i = 0; i < NUMBERS_MAX; i++) {
                _cleanup_free_ char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);

                if (name)
                        highest = (unsigned) i;
        }

        return highest;
}

int seccomp_filter_new(void) {
        _cleanup_(buffer_done) Buffer program = {};
        int r;

        /* libseccomp cannot compare the number, so this goes before what it writes. It also meets the x32
         * calls of x86-64, which have a bit set that is higher than any number. */
        const struct sock_filter head[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, highest_number(), 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        };

        r = buffer_append(&program, head, sizeof(head));
        if (r >= 0)
                r = append_rules(&program);
        if (r < 0)
                return r;

        return memfd_new_sealed("seccomp-filter", buffer_data(&program), buffer_size(&program));
}
