/* SPDX-License-Identifier: MIT */

/*
 * Tables of message ids, and entries made of them. libsystemd sends to the journal with a call that blocks when
 * the journal does not read, as one that hangs does not; so an entry is only sent when a second socket, connected
 * to the same place for nothing else, can be written to. An entry that cannot be sent is dropped: the audit trail
 * has it, too. The socket is all that is kept here.
 */

#include "daemon/journal.h"

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-journal.h>

#include "lib/buffer.h"
#include "lib/fd-util.h"
#include "lib/log.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/* More than any event has. */
#define FIELDS_MAX 24U

typedef struct MessageKind {
        const char *word;
        const char *id;
        int priority;
} MessageKind;

/* tools/lint holds both tables against the catalog. */
static const MessageKind event_kinds[] = {
        { "session_created", "8ed632b1fb574e0bbd6ce3195d9341b4", LOG_INFO },
        { "sandbox_started", "5ef84cc806014de4b3b06adfbd542f59", LOG_INFO },
        { "exec_turn", "038ead9f283048bfaaf53cd1b00fd12d", LOG_DEBUG },
        { "file_get", "85c7c0b1a5544298b6d4c3e062a476b1", LOG_INFO },
        { "file_put", "50f0117eb98844989abe9b9141e6a21a", LOG_INFO },
        { "frozen", "b113a554745541de9dcce7ca22746e8e", LOG_INFO },
        { "thawed", "51e42fc0cf0b416f989e57758876afe1", LOG_INFO },
        { "limit_hit", "9ff566b9efdf49d9b6da201f42720582", LOG_NOTICE },
        { "limits_set", "e3b3b09e620440b6b25ef0ce0bf85a73", LOG_NOTICE },
        { "network_refused", "355688334554483988c300a19efbc1dd", LOG_NOTICE },
        { "network_allowed", "b3d09cb83acb4e6d8cd8f7b13ca8f191", LOG_NOTICE },
        { "network_lost", "26ddc0c351cd49e3a1f56feb6a3f21ab", LOG_WARNING },
        { "saved", "11a80df6d3d34ff1b16ff2ac0a699d84", LOG_INFO },
        { "restored", "b7400e49ad7a441496c88241537bae2a", LOG_INFO },
        { "rolled_back", "8cd547961e326aad6319a16a3a39b83d", LOG_INFO },
        { "killed", "26d8c1b1cad049628c5d0880f5efc147", LOG_INFO },
        { "usage_metered", "480ff858f0a64cbf85e2f138e63ff36b", LOG_INFO },
        { "torn_down", "58fac27c7ac34ca68caf34494a09c8cc", LOG_INFO },
        { "adopted", "99c1c594b58c4abb9fe08763c71ef4e6", LOG_NOTICE },
        { "access_granted", "aeea3d8dc67a4b28ac7c616e1d820074", LOG_NOTICE },
        { "access_denied", "4b38fed6ca054a52ad6e30aefa5da980", LOG_WARNING },
        { "sandboxd_started", "b5feba2ed92d4cacaa847e2c8d3672ad", LOG_INFO },
        { "sandboxd_stopped", "00ba2e261dff4862b2fc3fd83a9a7828", LOG_INFO },
};

static const MessageKind audit_kinds[_JOURNAL_MESSAGE_MAX] = {
        [JOURNAL_AUDIT_HEAD] = { "audit_head", "ab1d23413b534fb69e4a768631dbdc75", LOG_INFO },
        [JOURNAL_AUDIT_LOSING] = { "audit_losing", "244e037fc0214027a939ede4553e7246", LOG_ERR },
        [JOURNAL_AUDIT_GAP] = { "audit_gap", "a2991de8a04a486092ad0d472821994d", LOG_WARNING },
        [JOURNAL_AUDIT_BROKEN] = { "audit_broken", "0e6814fd45bf40b09bb4b07b2c14ee51", LOG_ERR },
};

static int probe_fd = -EBADF;

/* An entry while it is put together: NAME=value texts, one after the other. */
typedef struct Entry {
        Buffer text[FIELDS_MAX];
        size_t n;
        int error;
} Entry;

static void entry_add(Entry *e, const char *name, const char *format, ...) _printf_(3, 4);
static void entry_add(Entry *e, const char *name, const char *format, ...) {
        _cleanup_free_ char *value = NULL;
        va_list ap;
        Buffer *b;
        int r;

        if (e->error < 0 || e->n >= FIELDS_MAX)
                return;
        va_start(ap, format);
        r = vasprintf(&value, format, ap);
        va_end(ap);
        if (r < 0) {
                value = NULL;
                e->error = -ENOMEM;
                return;
        }

        b = &e->text[e->n++];
        e->error = buffer_printf(b, "%s=%s", name, value);
}

/* SANDBOXD_ and the key in capitals, as journal fields are spelled. */
static void entry_add_field(Entry *e, const EventField *f) {
        char name[64];
        size_t n;

        n = (size_t) snprintf(name, sizeof(name), "SANDBOXD_%s", f->key);
        for (size_t i = 0; i < MIN(n, sizeof(name) - 1); i++)
                name[i] = (char) toupper((unsigned char) name[i]);
        if (f->text)
                entry_add(e, name, "%s", f->text);
        else
                entry_add(e, name, "%" PRIu64, f->number);
}

static void entry_add_common(Entry *e, const MessageKind *kind, const AuditHead *head, const char *message) {
        entry_add(e, "MESSAGE", "%s", message);
        entry_add(e, "PRIORITY", "%d", kind->priority);
        if (kind->id)
                entry_add(e, "MESSAGE_ID", "%s", kind->id);
        entry_add(e, "SYSLOG_IDENTIFIER", "sandboxd");
        entry_add(e, "SANDBOXD_EVENT", "%s", kind->word);
        if (head->seq > 0) {
                entry_add(e, "SANDBOXD_AUDIT_SEQ", "%" PRIu64, head->seq);
                entry_add(e, "SANDBOXD_AUDIT_HASH", "%s", head->hash);
        }
}

static void probe_connect(void) {
        static const struct sockaddr_un address = { AF_UNIX, JOURNAL_SOCKET };

        probe_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (probe_fd >= 0 && connect(probe_fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                probe_fd = safe_close(probe_fd);
}

static bool journal_takes_entries(void) {
        struct pollfd p = { .events = POLLOUT };

        if (probe_fd < 0)
                probe_connect();
        p.fd = probe_fd;
        if (p.fd < 0 || poll(&p, 1, /* timeout= */ 0) <= 0)
                return false;
        if (p.revents == POLLOUT)
                return true;
        probe_fd = safe_close(probe_fd); /* it is another journal by now */
        return false;
}

static void entry_send(Entry *e) {
        struct iovec iov[FIELDS_MAX];

        for (size_t i = 0; i < e->n; i++)
                iov[i] = (struct iovec){ (void *) buffer_data(&e->text[i]), buffer_size(&e->text[i]) };
        if (e->error >= 0 && journal_takes_entries())
                (void) sd_journal_sendv(iov, (int) e->n);
        for (size_t i = 0; i < e->n; i++)
                buffer_done(&e->text[i]);
}

static const MessageKind *find_kind(const char *event) {
        for (size_t i = 0; i < ELEMENTSOF(event_kinds); i++)
                if (streq(event_kinds[i].word, event))
                        return &event_kinds[i];
        return NULL;
}

/* "Session 0123456789ab 'dev' of uid 1000: killed (idle)", for people. */
static char *event_message(const EventRecord *r) {
        Buffer b = {};
        char *text;
        int k = 0;

        if (r->session)
                k = buffer_printf(&b, "Session %s%s%s%s of uid %u: ", r->session, r->name ? " '" : "",
                                  r->name ?: "", r->name ? "'" : "", (unsigned) r->uid);
        if (k >= 0)
                k = buffer_printf(&b, "%s%s%s%s", r->event, r->detail ? " (" : "", r->detail ?: "",
                                  r->detail ? ")" : "");
        if (k >= 0 && r->by)
                k = buffer_printf(&b, ", asked for by uid %u", (unsigned) *r->by);
        for (const EventField *f = r->fields; k >= 0 && f && f->key; f++)
                k = f->text ? buffer_printf(&b, ", %s %s", f->key, f->text)
                            : buffer_printf(&b, ", %s %" PRIu64, f->key, f->number);
        if (k < 0 || buffer_take(&b, &text, NULL) < 0) {
                buffer_done(&b);
                return NULL;
        }
        return text;
}

void journal_event(const EventRecord *record, const AuditHead *head) {
        const MessageKind unknown = { record->event, NULL, LOG_INFO }, *kind = find_kind(record->event) ?: &unknown;
        _cleanup_free_ char *message = NULL;
        Entry e = {};

        /* The journal is told whatever the level of our own messages is, but for turns. In a terminal the life of
         * sessions is for those who look for it; trouble is for all. */
        if (kind->priority > (log_is_journal() ? LOG_INFO : LOG_WARNING) && !log_enabled(LOG_DEBUG))
                return;
        message = event_message(record);
        if (!message) {
                log_oom();
                return;
        }
        if (!log_is_journal()) {
                (void) log_full(kind->priority, 0, "%s", message);
                return;
        }

        entry_add_common(&e, kind, head, message);
        if (record->session) {
                entry_add(&e, "SANDBOXD_SESSION", "%s", record->session);
                entry_add(&e, "SANDBOXD_UID", "%u", (unsigned) record->uid);
        }
        if (record->name)
                entry_add(&e, "SANDBOXD_NAME", "%s", record->name);
        if (record->detail)
                entry_add(&e, "SANDBOXD_REASON", "%s", record->detail);
        if (record->by)
                entry_add(&e, "SANDBOXD_BY", "%u", (unsigned) *record->by);
        for (const EventField *f = record->fields; f && f->key; f++)
                entry_add_field(&e, f);
        entry_send(&e);
}

void journal_audit(JournalMessage message, const AuditHead *head, const char *format, ...) {
        const MessageKind *kind = &audit_kinds[message];
        _cleanup_free_ char *text = NULL;
        Entry e = {};
        va_list ap;
        int r;

        assert(message >= 0 && message < _JOURNAL_MESSAGE_MAX);

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0) {
                text = NULL;
                log_oom();
                return;
        }
        if (!log_is_journal()) {
                (void) log_full(message == JOURNAL_AUDIT_HEAD ? LOG_DEBUG : kind->priority, 0, "%s", text);
                return;
        }

        entry_add_common(&e, kind, head, text);
        entry_send(&e);
}
