/* SPDX-License-Identifier: MIT */

/* Run and Interrupt. A call that runs a turn is parked: the turn's waiter answers it. */

#include <inttypes.h>
#include <math.h>

#include "daemon/api-private.h"
#include "daemon/environment-choice.h"
#include "daemon/shortage.h"
#include "lib/log.h"

/* Members of a Run call; what was not asked is NULL, 0 or -1. */
typedef struct RunParameters {
        JsonBytes code;
        const char *environment, *interpreter, *session, *project, *tag;
        uint64_t timeout_ms, memory_mb, answer_after_ms;
        double cpus;
} RunParameters;

static const JsonField run_table[] = {
        { "code", JSON_KIND_BYTES, offsetof(RunParameters, code), JSON_MANDATORY },
        { "environment", JSON_KIND_STRING, offsetof(RunParameters, environment) },
        { "interpreter", JSON_KIND_STRING, offsetof(RunParameters, interpreter) },
        { "session", JSON_KIND_STRING, offsetof(RunParameters, session) },
        { "project", JSON_KIND_STRING, offsetof(RunParameters, project) },
        { "tag", JSON_KIND_STRING, offsetof(RunParameters, tag) },
        { "timeout_ms", JSON_KIND_UINT, offsetof(RunParameters, timeout_ms) },
        { "memory_mb", JSON_KIND_UINT, offsetof(RunParameters, memory_mb) },
        { "cpus", JSON_KIND_NUMBER, offsetof(RunParameters, cpus) },
        { "answer_after_ms", JSON_KIND_UINT, offsetof(RunParameters, answer_after_ms) },
        {},
};

static uint64_t usec_from_ms(uint64_t ms) {
        return ms > UINT64_MAX / USEC_PER_MSEC / 2 ? UINT64_MAX / 2 : ms * USEC_PER_MSEC;
}

/* 0 asked means at once; not asked means when the turn is over. */
uint64_t api_answer_at(uint64_t answer_after_ms) {
        return answer_after_ms == UINT64_MAX ? USEC_INFINITY
                                             : now_monotonic() + usec_from_ms(answer_after_ms);
}

/* What is wrong with the values that were asked for. 0: nothing; 1: refused, and answered. */
static int run_check(VarlinkLink *link, const RunParameters *p) {
        const char *bad = NULL, *why = NULL;

        if (memchr(p->code.data, 0, p->code.size)) {
                bad = "code";
                why = "The code contains a NUL character; no interpreter takes one in its source. Write "
                      "binary data to a file.";
        } else if (p->code.size > AGENT_CODE_MAX) {
                bad = "code";
                why = "The code is longer than 4 MiB. Put data into files below /workspace and read them "
                      "from the code.";
        } else if (!isfinite(p->cpus) || p->cpus < 0) {
                bad = "cpus";
                why = "cpus must be a positive number.";
        } else if (p->project && (p->project[0] != '/' || strlen(p->project) > SESSION_PROJECT_MAX)) {
                bad = "project";
                why = "project must be an absolute path of at most 4096 bytes.";
        } else if (p->tag && !name_is_valid(p->tag)) {
                bad = "tag";
                why = API_TAG_RULE;
        }
        if (!bad)
                return 0;

        (void) varlink_error_invalid(link, bad, why);
        return 1;
}

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

/* Whether the peer's uid may have one more session of this size (row R5). */
static int check_caps(VarlinkLink *link, const Manager *m, uid_t uid, const Limits *limits) {
        const User *u = user_find(m->users, uid);
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

static Limits environment_limits(const Config *c, const Environment *e) {
        Limits limits = c->defaults;

        if (e->timeout_usec > 0)
                limits.timeout_usec = e->timeout_usec;
        if (e->memory_mb > 0)
                limits.memory_mb = e->memory_mb;
        if (e->cpus > 0)
                limits.cpus = e->cpus;
        return limits;
}

/* Where a turn will run, and what of the request was changed. */
typedef struct RunTarget {
        Session *session;
        Interpreter interpreter;
        SessionOrigin origin;
        uint64_t timeout_usec;
        char *notice;
        const char *gone;               /* why an earlier session of the same name ended; static */
} RunTarget;

static void run_target_done(RunTarget *t) {
        free(t->notice);
}

static int run_in_new_session(VarlinkLink *link, Manager *m, const RunParameters *p, RunTarget *ret) {
        const PeerCred *peer = varlink_link_peer(link);
        const LimitsRequest ask = {
                .cpus = p->cpus,
                .memory_mb = p->memory_mb,
                .timeout_usec = usec_from_ms(p->timeout_ms),
        };
        EnvironmentChoice choice;
        Limits base, limits, turn;
        int r;

        if (m->stopping) {
                r = api_error(link, API_ERROR("StartFailed"), NULL, NULL,
                              "sandboxd is stopping: try again in a moment.");
                return r < 0 ? r : 1;
        }

        r = environment_choose_new(m->config->environments, p->environment, p->interpreter, !!p->session,
                                   &choice);
        if (r > 0)
                return refuse_choice(link, m, p, NULL, r);

        base = environment_limits(m->config, choice.environment);
        r = limits_apply(&base, &m->config->max, &ask, &turn, &ret->notice);
        if (r < 0)
                return r;
        /* The time asked for is of this turn; later ones have the environment's again. */
        limits = turn;
        limits.timeout_usec = MIN(base.timeout_usec, m->config->max.timeout_usec);

        r = check_caps(link, m, peer->uid, &limits);
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
                                        .environment = choice.environment,
                                        .limits = limits,
                        },
                        &ret->session);
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

/* Finds or makes the session. 0: *ret is set; 1: refused, and answered. */
static int run_find_target(VarlinkLink *link, Manager *m, const RunParameters *p, RunTarget *ret) {
        Session *s;
        int r;

        if (!p->session)
                return run_in_new_session(link, m, p, ret);

        if (name_is_valid(p->session)) {
                s = manager_find_named(m, varlink_link_peer(link)->uid, p->project ?: "/", p->session);
                if (!s)
                        return run_in_new_session(link, m, p, ret);
        }
        r = api_find_session(link, m,
                             &(SessionParameters){ .session = p->session, .project = p->project ?: "/" },
                             SESSION_VERB_RUN, &s);
        return r != 0 ? r : run_in_existing_session(link, m, s, p, ret);
}

static int run_start(VarlinkLink *link, const Manager *m, const RunParameters *p, const RunTarget *target,
                     bool stream) {
        _cleanup_(turn_freep) Turn *t = NULL;
        Session *s = target->session;
        int r;

        r = turn_new(&s->turn_context, target->interpreter, target->origin, target->timeout_usec,
                     p->code.data, p->code.size, &t);
        if (r >= 0)
                r = turn_set_tag(t, p->tag);
        if (r < 0)
                return r;
        if (target->notice) {
                r = turn_add_notice(t, "%s", target->notice);
                if (r < 0)
                        return r;
        }
        if (target->origin == SESSION_ORIGIN_RESUMED && (p->memory_mb > 0 || p->cpus > 0)) {
                r = turn_add_notice(
                                t,
                                "Memory and CPUs are set when a session is created; this one keeps %" PRIu64
                                " MB and %g CPUs.",
                                s->limits.memory_mb, s->limits.cpus);
                if (r < 0)
                        return r;
        }

        if (target->gone) {
                r = turn_add_notice(t, "The earlier session '%s' has ended: %s. This is a new one and starts empty.",
                                    s->name, target->gone);
                if (r < 0)
                        return r;
        }

        r = turn_add_waiter(t, link, /* owner= */ true, stream, api_answer_at(p->answer_after_ms));
        if (r < 0)
                return r;

        if (m->config->session.end_on_disconnect && s->name &&
            session_set_client(s, varlink_link_peer(link)) < 0)
                log_debug("Session %s: its client cannot be watched.", s->id);
        session_enqueue(s, TAKE_PTR(t));
        return 0;
}

int vl_method_run(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_(run_target_done) RunTarget target = {};
        RunParameters p = { .answer_after_ms = UINT64_MAX };
        Manager *m = userdata;
        int r;

        r = api_dispatch(link, parameters, run_table, &p);
        if (r == 0)
                r = run_check(link, &p);
        if (r == 0)
                r = run_find_target(link, m, &p, &target);
        if (r != 0)
                return MIN(r, 0);

        r = run_start(link, m, &p, &target, flags & VARLINK_MORE);
        if (target.origin == SESSION_ORIGIN_RESUMED)
                return r;
        if (r < 0)
                session_end(target.session, "start-failed");
        else
                session_start(target.session);
        return r;
}

int vl_method_interrupt(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        _cleanup_json_ json_object *reply = NULL;
        Session *s;
        int r;

        r = api_session_parameters(link, userdata, parameters, SESSION_VERB_INTERRUPT, &s);
        if (r != 0)
                return MIN(r, 0);

        reply = json_object_new_object();
        if (!reply || json_put_bool(reply, "interrupted", session_interrupt(s)) < 0)
                return -ENOMEM;
        (void) varlink_reply(link, reply);
        return 0;
}
