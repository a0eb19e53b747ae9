/* SPDX-License-Identifier: MIT */

/*
 * What of a session outlives this process: its record in the runtime directory and its agent's socket in the
 * service manager's store. The next daemon needs both (session-adopt.c). Nothing here can fail a session.
 */

#include "daemon/fd-store.h"
#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "daemon/session-private.h"
#include "lib/log.h"

/* What turns change is kept a while after the first of them, so that many in a row cost one record. */
#define KEEP_DELAY_USEC (2 * USEC_PER_SEC)

static void record_artifact(const Environment *e, SessionRecordArtifact *ret) {
        *ret = (SessionRecordArtifact){
                .source = environment_origin(e),
                .is_users = e->is_users,
                .n_interpreters = e->n_interpreters,
        };
        memcpy(ret->interpreters, e->interpreters, sizeof(ret->interpreters));
}

void session_keep(Session *s) {
        _cleanup_json_ json_object *network = NULL;
        const Turn *t = s->running;
        SessionRecord record = {
                .id = s->id,
                .uid = s->peer.uid,
                .gid = s->peer.gid,
                .groups = s->peer.groups,
                .n_groups = s->peer.n_groups,
                .project = s->project,
                .project_mode = s->project_mode,
                .name = s->name,
                .environment = s->environment->name,
                .limits = s->limits,
                .bounds = s->bounds,
                .workspace_mb = s->workspace_mb,
                .frozen_realtime = s->frozen_realtime,
                .frozen_by = s->frozen_by,
                .interpreters = s->interpreters,
                .created = s->created,
                .created_realtime = s->created_realtime,
                .idle_since = s->idle_since,
                .state = s->state,
                .pid = (uint64_t) s->pid,
                .turns = s->turns,
                .turn_usec = s->turn_usec,
                .history = s->history,
                .snapshot = s->save.snapshot,
                .snapshot_bytes = s->save.bytes,
                .saved_turns = s->save.saved_turns,
                .changed = session_save_is_changed(&s->save),
                .restoring = s->restore,
                .restored = s->restored,
        };
        int r;

        record_artifact(s->environment, &record.artifact);
        if (t)
                record.turn = (SessionRecordTurn){
                        .number = t->number,
                        .code = { t->code, history_code_size(t->code, t->code_size) },
                        .notice = { buffer_data(&t->notice), buffer_size(&t->notice) },
                };

        s->keep_at = 0;
        r = session_network_to_json(s, &network);
        record.network = network;
        if (r >= 0)
                r = record_directory_write(&s->manager->records, &record);
        if (r < 0)
                (void) log_warning_errno(r,
                                         "Session %s: failed to write its record, so it would not survive a "
                                         "restart of sandboxd: %m",
                                         s->id);
}

void session_keep_later(Session *s) {
        if (s->keep_at > 0 || !s->manager->adoptable)
                return;
        s->keep_at = now_monotonic() + KEEP_DELAY_USEC;
        session_arm_timer(s);
}

void session_keep_on_time(Session *s, uint64_t now) {
        if (s->keep_at > 0 && s->keep_at <= now)
                session_keep(s);
}

void session_keep_socket(Session *s, int fd) {
        if (!s->manager->adoptable)
                return;
        fd_store_put(s->id, fd);
        s->socket_kept = true;
}

void session_forget_socket(Session *s) {
        if (s->socket_kept)
                fd_store_drop(s->id);
        s->socket_kept = false;
}

void session_forget(Session *s) {
        session_forget_socket(s);
        /* What ends with the daemon is told by the next one. */
        if (s->name && streq_ptr(s->end_reason, SESSION_END_SHUTDOWN))
                session_keep(s);
        else
                record_directory_remove(&s->manager->records, s->id);
}
