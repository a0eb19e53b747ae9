/* SPDX-License-Identifier: MIT */

/* What sandbox-become is told, how it is executed, and what it says. */

#include "daemon/become.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/text.h"

/* Its own arguments at most: its name, its options, "--", the program. */
#define WORDS_MAX (BECOME_JOIN_MAX + 7U)

_printf_(3, 4) static int add_word(char *argv[], size_t *n, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&argv[*n], format, ap);
        va_end(ap);
        if (r < 0) {
                argv[*n] = NULL;
                return -ENOMEM;
        }
        (*n)++;
        return 0;
}

static int add_options(const Become *b, char *argv[], size_t *n) {
        int r;

        r = add_word(argv, n, "--" BECOME_UID "=%u", (unsigned) b->uid);
        for (size_t i = 0; r >= 0 && i < b->n_join; i++)
                r = add_word(argv, n, "--" BECOME_JOIN "=%d", b->join_fd + (int) i);
        if (r >= 0 && b->project)
                r = add_word(argv, n, "--" BECOME_PROJECT "=%s", b->project);
        if (r >= 0 && b->end_with_us)
                r = add_word(argv, n, "--" BECOME_PARENT "=%d", getpid());
        if (r >= 0 && b->alone)
                r = add_word(argv, n, "--" BECOME_ALONE);
        return r;
}

int become_build_argv(const Become *b, const char *program, const char *const *argv, char ***ret) {
        _cleanup_(strv_freep) char **all = NULL;
        size_t n = 0, n_argv = 0;
        int r;

        assert(b->n_join <= BECOME_JOIN_MAX);
        while (argv[n_argv])
                n_argv++;
        all = calloc(WORDS_MAX + n_argv + 1, sizeof(char *));
        if (!all)
                return -ENOMEM;

        r = add_word(all, &n, BECOME_PROGRAM);
        if (r >= 0)
                r = add_options(b, all, &n);
        if (r >= 0)
                r = add_word(all, &n, "--");
        if (r >= 0)
                r = add_word(all, &n, "%s", program);
        for (size_t i = 0; r >= 0 && i < n_argv; i++)
                r = add_word(all, &n, "%s", argv[i]);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(all);
        return 0;
}

int become_failure_parse(const char *text, char **ret_step, int *ret_error) {
        const char *step, *end, *digits;
        char number[8];
        uint64_t error;
        size_t n;

        if (strncmp(text, BECOME_TEXT_BEGIN, strlen(BECOME_TEXT_BEGIN)) != 0)
                return 0;
        step = text + strlen(BECOME_TEXT_BEGIN);
        end = strstr(step, BECOME_TEXT_ERROR);
        if (!end)
                return 0;
        digits = end + strlen(BECOME_TEXT_ERROR);
        n = strcspn(digits, " ");
        if (n >= sizeof(number))
                return 0;
        memcpy(number, digits, n);
        number[n] = 0;
        if (parse_u64(number, &error) < 0 || error == 0)
                return 0;

        *ret_step = strndup(step, (size_t) (end - step));
        if (!*ret_step)
                return -ENOMEM;
        *ret_error = (int) error;
        return 1;
}

int become_set_groups(const gid_t *groups, size_t n_groups) {
        return (int) syscall(SYS_setgroups, n_groups, groups);
}

int become_set_gid(gid_t gid) {
        return (int) syscall(SYS_setresgid, gid, gid, gid);
}

/* Whoever is not root keeps over execve(2) only what is ambient. What fails here, setting the uid will tell. */
static void keep_right_to_set_uid(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = {};

        if (syscall(SYS_capget, &header, data) < 0)
                return;
        data[0].inheritable |= 1U << CAP_SETUID;
        (void) syscall(SYS_capset, &header, data);
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SETUID, 0, 0);
}

void become_execute(int become_fd, char *const argv[]) {
        static char *const empty_environment[] = { NULL };

        keep_right_to_set_uid();
        (void) syscall(SYS_execveat, become_fd, "", argv, empty_environment, AT_EMPTY_PATH);
}
