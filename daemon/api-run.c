/* SPDX-License-Identifier: MIT */

/* Run and Interrupt. A call that runs a turn is parked: the turn's waiter answers it. */

#include <inttypes.h>
#include <math.h>

#include "daemon/api-target.h"
#include "lib/log.h"

static const JsonField run_table[] = {
        { "code", JSON_KIND_BYTES, offsetof(RunParameters, code), JSON_MANDATORY },
        { "environment", JSON_KIND_STRING, offsetof(RunParameters, environment) },
        { "interpreter", JSON_KIND_STRING, offsetof(RunParameters, interpreter) },
        { "session", JSON_KIND_STRING, offsetof(RunParameters, session) },
        { "project", JSON_KIND_STRING, offsetof(RunParameters, project) },
        { "project_mode", JSON_KIND_STRING, offsetof(RunParameters, project_mode) },
        { "tag", JSON_KIND_STRING, offsetof(RunParameters, tag) },
        { "timeout_ms", JSON_KIND_UINT, offsetof(RunParameters, timeout_ms) },
        { "memory_mb", JSON_KIND_UINT, offsetof(RunParameters, memory_mb) },
        { "cpus", JSON_KIND_NUMBER, offsetof(RunParameters, cpus) },
        { "network", JSON_KIND_ARRAY, offsetof(RunParameters, rules) },
        { "answer_after_ms", JSON_KIND_UINT, offsetof(RunParameters, answer_after_ms) },
        {},
};

/* 0 asked means at once; not asked means when the turn is over. */
uint64_t api_answer_at(uint64_t answer_after_ms) {
        return answer_after_ms == UINT64_MAX ? USEC_INFINITY
                                             : now_monotonic() + usec_from_ms(answer_after_ms);
}

/* What is wrong with the values that were asked for. 0: nothing; 1: refused, and answered. */
static int run_check(VarlinkLink *link, const RunParameters *p) {
        const char *bad = NULL, *field, *why = NULL, *fault = api_project_fault(p->project, p->project_mode, &field);

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
        } else if (fault) {
                bad = field;
                why = fault;
        } else if (p->tag && !name_is_valid(p->tag)) {
                bad = "tag";
                why = API_TAG_RULE;
        }
        if (!bad)
                return 0;

        (void) varlink_error_invalid(link, bad, why);
        return 1;
}

/* When the project is not mounted as was asked. */
static int notice_project(Turn *t, const Manager *m, const RunParameters *p, const RunTarget *target) {
        const Session *s = target->session;
        const char *has = project_mode_to_string(s->project_mode);
        ProjectMode possible = api_project_mode(m->config, s->environment, p->project_mode);

        if (!p->project_mode || streq(p->project_mode, has))
                return 0;
        if (s->project_mode != possible)
                return turn_add_notice(t,
                                       "How the project is mounted is set when a session is created; in this one "
                                       "it is \"%s\".",
                                       has);
        if (target->origin == SESSION_ORIGIN_RESUMED)
                return 0;       /* it was said when the session was made */
        return turn_add_notice(t,
                               "The project is mounted \"%s\", not \"%s\": the configuration allows no more "
                               "(\"project\" in \"defaults\" or in environment \"%s\").",
                               has, p->project_mode, s->environment->name);
}

/* The same of the network. */
static int notice_network(Turn *t, const RunParameters *p, const RunTarget *target) {
        const Session *s = target->session;

        if (!p->network)
                return 0;
        if (!s->network)
                return p->network->n_rules == 0 ? 0
                                                : turn_add_notice(t,
                                                                  "The environment '%s' has no network, whatever is "
                                                                  "asked for.",
                                                                  s->environment->name);
        if (target->origin != SESSION_ORIGIN_RESUMED)
                return 0;
        return turn_add_notice(t, "What a session may reach is set when it is created; this one's network stays as "
                                  "it is.");
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

        r = notice_project(t, m, p, target);
        if (r >= 0)
                r = notice_network(t, p, target);
        if (r < 0)
                return r;

        if (target->gone) {
                r = turn_add_notice(t, "The earlier session '%s' has ended: %s.%s", s->name, target->gone,
                                    target->restore || target->unrestored ? ""
                                                                          : " This is a new one and starts empty.");
                if (r < 0)
                        return r;
        }
        if (target->unrestored) {
                r = turn_add_notice(t, "%s", target->unrestored);
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

int api_run(const RunCall *call, Manager *m) {
        /* The catalog may have others at the next look; what is chosen is borrowed from these. */
        _cleanup_(environment_set_unrefp) EnvironmentSet *set =
                        environment_set_ref(call->environments ?: environment_catalog_look(m->environments));
        _cleanup_(run_target_done) RunTarget target = {};
        _cleanup_(network_list_done) NetworkList network = {};
        RunParameters p = { .answer_after_ms = UINT64_MAX, .call = call, .environments = environment_set_table(set) };
        VarlinkLink *link = call->link;
        int r;

        r = api_dispatch(link, call->parameters, run_table, &p);
        if (r == 0)
                r = run_check(link, &p);
        if (r == 0)
                r = api_network_list(link, "network", p.rules, &network);
        p.network = p.rules ? &network : NULL;
        if (r == 0)
                r = run_find_target(link, m, &p, &target);
        if (r != 0)
                return MIN(r, 0);

        r = run_start(link, m, &p, &target, call->flags & VARLINK_MORE);
        if (target.origin == SESSION_ORIGIN_RESUMED)
                return r;
        if (r < 0)
                session_end(target.session, "start-failed");
        else
                session_start(target.session);
        return r;
}

int vl_method_run(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        return api_run(&(RunCall){ .link = link, .parameters = parameters, .flags = flags }, userdata);
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
