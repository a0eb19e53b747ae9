/* SPDX-License-Identifier: MIT */

/* The session of a Run: the one of that name, or a new one, with what was saved of an earlier one. */

#include "daemon/api-target.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/environment-choice.h"
#include "daemon/shortage.h"

static int refuse_choice(VarlinkLink *link, const Manager *m, const RunParameters *p, const Session *s,
                         int error) {
        _cleanup_free_ char *quoted = NULL;
        int r;

        switch ((ChoiceError) error) {
        case CHOICE_E_NO_ENVIRONMENT:
                quoted = text_quote(p->environment, NAME_MAX_LENGTH);
                r = api_error(link, API_ERROR("NoSuchEnvironment"), "environment", p->environment,
                              "There is no environment %s. 'sandboxctl envs' lists them; python, shell, "
                              "node and default are always there.",
                              quoted ?: "");
                break;
        case CHOICE_E_NO_INTERPRETER:
                quoted = text_quote(p->interpreter, NAME_MAX_LENGTH);
                r = api_error(link, API_ERROR("NoSuchInterpreter"), "interpreter", p->interpreter,
                              "Environment '%s' has no interpreter %s. There are python, bash and node; environment "
                              "'default' has all of them.",
                              p->environment ?: (s ? s->environment->name : ENVIRONMENT_DEFAULT), quoted ?: "");
                break;
        case CHOICE_E_MISMATCH:
                quoted = text_quote(p->environment, NAME_MAX_LENGTH);
                r = api_error(link, API_ERROR("NoSuchEnvironment"), "environment", p->environment,
                              "Session '%s' was created with environment '%s', which is not and has not %s. "
                              "Leave env out, or use another session name.",
                              s->name ?: s->id, s->environment->name, quoted ?: "");
                break;
        default:
                assert_se(false);
        }
        return r < 0 ? r : 1;
}

static int refuse_sessions(VarlinkLink *link, uint64_t max) {
        _cleanup_json_ json_object *p = json_object_new_object();

        if (!p || json_put_uint(p, "max", max) < 0 ||
            json_put_string(p, "message",
                            "You have as many sessions as user.max_sessions allows. End one with 'sandboxctl "
                            "kill'.") < 0)
                return -ENOMEM;
        (void) varlink_error(link, API_ERROR("TooManySessions"), p);
        return 0;
}

int api_check_caps(VarlinkLink *link, const Manager *m, const Limits *limits) {
        const User *u = user_find(m->users, varlink_link_peer(link)->uid);
        int r;

        if (!u)
                return 0;
        if (u->n_sessions >= m->config->user.sessions_max)
                r = refuse_sessions(link, m->config->user.sessions_max);
        else if (m->config->user.memory_mb_max - MIN(m->config->user.memory_mb_max, u->memory_mb) <
                 limits->memory_mb)
                r = api_error(link, API_ERROR("LimitExceeded"), "limit", "memory",
                              "The memory limits of your sessions together would pass user.max_memory_mb. "
                              "End one with 'sandboxctl kill', or ask for less memory.");
        else
                return 0;
        return r < 0 ? r : 1;
}

Limits api_environment_limits(const Config *c, const Environment *e) {
        Limits limits = c->defaults;

        if (e->timeout_usec > 0)
                limits.timeout_usec = e->timeout_usec;
        if (e->memory_mb > 0)
                limits.memory_mb = e->memory_mb;
        if (e->cpus > 0)
                limits.cpus = e->cpus;
        if (e->disk_mb > 0)
                limits.disk_mb = e->disk_mb;
        return limits;
}

void run_target_done(RunTarget *t) {
        free(t->notice);
        free(t->unrestored);
}

/* "The state of 2 h ago (turn 12) is kept, …" */
static int describe_unrestored(const SnapshotFound *f, const RunParameters *p, const char *why, char **ret) {
        uint64_t now = now_realtime();
        char age[32];

        snapshot_age(now > f->info.time_usec ? now - f->info.time_usec : 0, age, sizeof(age));
        if (asprintf(ret,
                     "A saved state of '%s' (%s ago, turn %" PRIu64 ") was not restored, because %s; this session "
                     "starts empty. To have it in another one: action restore, or 'sandboxctl restore %s NEWNAME'.",
                     p->session, age, f->info.turns, why, p->session) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* Whether it is not known yet if the caller has the environment that is needed: what was saved had it, or it is asked
 * for. */
static bool is_unknown(const RunParameters *p, const SnapshotFound *f, int chosen) {
        if (p->call->environments)
                return false;
        return chosen == CHOICE_E_NO_ENVIRONMENT ||
                (f->exists && !f->closed && !environment_table_find(p->environments, f->info.environment));
}

/* What is restored has the environment that it had; who asks for another one gets that, and nothing else. */
static int choose_restored(const RunParameters *p, const SnapshotFound *f, EnvironmentChoice *choice,
                           RunTarget *ret) {
        const Environment *e = environment_table_find(p->environments, f->info.environment);
        int r;

        if (f->closed)
                r = describe_unrestored(f, p, "that session was ended by hand", &ret->unrestored);
        else if (!e)
                r = describe_unrestored(f, p, "its environment is not configured any more", &ret->unrestored);
        else {
                r = environment_choose_existing(e, p->environment, p->interpreter, choice);
                if (r == 0)
                        ret->restore = true;
                if (r != CHOICE_E_MISMATCH)
                        return r;
                r = describe_unrestored(f, p, "it has another environment", &ret->unrestored);
        }
        return r;
}

/* 0; positive: a ChoiceError; negative errno. */
static int choose_new(const RunParameters *p, const SnapshotFound *f, EnvironmentChoice *choice,
                      RunTarget *ret) {
        int r = f->exists ? choose_restored(p, f, choice, ret) : 0;

        if (r != 0 || ret->restore)
                return r;
        return environment_choose_new(p->environments, p->environment, p->interpreter, !!p->session, choice);
}

static int refuse_stopping(VarlinkLink *link) {
        int r;

        r = api_error(link, API_ERROR("StartFailed"), NULL, NULL, "sandboxd is stopping: try again in a moment.");
        return r < 0 ? r : 1;
}

static int run_in_new_session(VarlinkLink *link, Manager *m, const RunParameters *p, RunTarget *ret) {
        const PeerCred *peer = varlink_link_peer(link);
        const LimitsRequest ask = {
                .cpus = p->cpus,
                .memory_mb = p->memory_mb,
                .timeout_usec = usec_from_ms(p->timeout_ms),
        };
        char key[SNAPSHOT_KEY_LENGTH + 1];
        SnapshotFound found = {};
        EnvironmentChoice choice;
        Limits base, limits, turn;
        int r;

        if (m->stopping)
                return refuse_stopping(link);
        if (p->session) {
                snapshot_key(p->project ?: "/", p->session, key);
                r = api_lookup_snapshot(p->call, m, key, &found);
                if (r != 0)
                        return r;
        }

        r = choose_new(p, &found, &choice, ret);
        if (r >= 0 && is_unknown(p, &found, r)) {
                int k = api_ask_environments(p->call, m, api_run);

                if (k != 0)
                        return k;
        }
        if (r < 0)
                return r;
        if (r > 0)
                return refuse_choice(link, m, p, NULL, r);

        base = api_environment_limits(m->config, choice.environment);
        r = limits_apply(&base, &m->config->max, &ask, &turn, &ret->notice);
        if (r < 0)
                return r;
        /* The time asked for is of this turn; later ones have the environment's again. */
        limits = turn;
        limits.timeout_usec = MIN(base.timeout_usec, m->config->max.timeout_usec);

        r = api_check_caps(link, m, &limits);
        if (r != 0)
                return r;

        if (p->session)
                ret->gone = obituaries_take(&m->obituaries, peer->uid, p->project ?: "/", p->session);
        ret->interpreter = choice.interpreter;
        ret->origin = p->session ? SESSION_ORIGIN_CREATED : SESSION_ORIGIN_EPHEMERAL;
        ret->timeout_usec = turn.timeout_usec;
        r = session_new(m,
                        &(SessionRequest){
                                        .peer = peer,
                                        .name = p->session,
                                        .project = p->project ?: "/",
                                        .project_mode = api_project_mode(m->config, choice.environment,
                                                                         p->project_mode),
                                        .environment = choice.environment,
                                        .limits = limits,
                                        .network = p->network,
                        },
                        &ret->session);
        if (r >= 0 && ret->restore) {
                r = session_restore_begin(ret->session,
                                          &(SessionRestoreRequest){ .key = key, .automatic = true });
                if (r < 0)
                        session_end(ret->session, "start-failed");
        }
        if (r >= 0)
                return 0;

        r = api_error(link, API_ERROR("StartFailed"), NULL, NULL, "The session could not be made: %s.%s",
                      strerror(-r), shortage_advice(r));
        return r < 0 ? r : 1;
}

static int run_in_existing_session(VarlinkLink *link, Manager *m, Session *s, const RunParameters *p,
                                   RunTarget *ret) {
        const LimitsRequest ask = { .timeout_usec = usec_from_ms(p->timeout_ms) };
        EnvironmentChoice choice;
        Limits turn;
        int r;

        r = environment_choose_existing(s->environment, p->environment, p->interpreter, &choice);
        if (r > 0)
                return refuse_choice(link, m, p, s, r);
        if (s->n_queued >= SESSION_QUEUE_MAX) {
                r = api_error(link, API_ERROR("Busy"), "session", s->name,
                              "Session '%s' has %u turns waiting already. Wait for them, or use another "
                              "session.",
                              s->name, s->n_queued);
                return r < 0 ? r : 1;
        }

        r = limits_apply(&s->limits, &m->config->max, &ask, &turn, &ret->notice);
        if (r < 0)
                return r;

        ret->session = s;
        ret->interpreter = choice.interpreter;
        ret->origin = SESSION_ORIGIN_RESUMED;
        ret->timeout_usec = turn.timeout_usec;
        return 0;
}

/* It is being saved, and then it ends; the next of that name has what it had. */
static int run_after_session(VarlinkLink *link, Manager *m, const Session *s, const RunParameters *p) {
        char key[SNAPSHOT_KEY_LENGTH + 1];

        if (m->stopping)
                return refuse_stopping(link);
        snapshot_key(s->project, s->name, key);
        return api_keep_run(p->call, m, key);
}

int run_find_target(VarlinkLink *link, Manager *m, const RunParameters *p, RunTarget *ret) {
        Session *s;
        int r;

        if (!p->session)
                return run_in_new_session(link, m, p, ret);

        if (name_is_valid(p->session)) {
                s = manager_find_named(m, varlink_link_peer(link)->uid, p->project ?: "/", p->session);
                if (!s)
                        return run_in_new_session(link, m, p, ret);
                if (session_retire_is_final(&s->save))
                        return run_after_session(link, m, s, p);
        }
        r = api_find_session(link, m,
                             &(SessionParameters){ .session = p->session, .project = p->project ?: "/" },
                             SESSION_VERB_RUN, &s);
        if (r != 0)
                return r;
        if (session_retire_is_final(&s->save)) {
                r = api_refuse_ended(link, p->session, s->save.retire);
                return r < 0 ? r : 1;
        }
        return run_in_existing_session(link, m, s, p, ret);
}
