/* SPDX-License-Identifier: MIT */

/*
 * Schemas are flat objects of scalars, because editors drop or stringify anything richer. What sandboxes may reach is
 * told in advance, so that a model need not try; at most in so many words, since it can ask for the rest.
 */

#include "tools-list.h"

#include "lib/json-writer.h"

#include "must.h"

/* Bytes: of what one environment may reach, and after which no other one is named. */
#define RULES_MAX 200U
#define NETWORK_MAX 400U

#define NETWORK_LEAD "Network, through a proxy for HTTP(S) and SOCKS5 only: "

const char tools_instructions[] =
        "Runs code in sandboxes: no network but what an environment allows, the project directory read-only "
        "at /project, files in /workspace. Environments: python, shell, node, default (all three in one "
        "sandbox); the session tool's action \"environments\" lists all of them. A run without a session "
        "starts clean and leaves nothing behind. Give a session name to keep variables, imports, the working "
        "directory and files from one run to the next; python, shell and node runs of one session share its "
        "/workspace. A run that takes longer than 50 s is answered early: go on with the session tool's "
        "action \"wait\".";

/* Written as JSON that is readable here: one member a line, double quotes as \". Between them stand what may be
 * reached, and whether that is something. */
static const char before_network[] =
        "[{\"name\":\"run\",\"title\":\"Run code in a sandbox\","
        "\"description\":\"Run code in a sandbox and get its output, exit code and errors as text. ";

static const char before_open_world[] =
        ". The project directory is read-only at /project; write files to /workspace, the "
        "working directory. The value of a last expression is shown in python and node. Without session "
        "the sandbox is new and thrown away afterwards. With session, variables, functions, imports, the "
        "working directory and files are still there in the next run with that name. A session belongs to "
        "this project and is paused while unused. When it has ended (after a day, or with the machine), the next "
        "run with its name restores what was saved of it, and says what was not.\","
        "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
        "\"code\":{\"type\":\"string\","
        "\"description\":\"Source text for the environment's interpreter.\"},"
        "\"env\":{\"type\":\"string\","
        "\"description\":\"Interpreter or environment: python, shell, node, default, or the name of a "
        "configured one. Left out: that of the session, else python.\"},"
        "\"session\":{\"type\":\"string\","
        "\"description\":\"Name of the session to keep state in: letters, digits, _ and -, at most 64. "
        "Left out: a clean sandbox for this run only.\"},"
        "\"timeout\":{\"type\":\"number\","
        "\"description\":\"Seconds after which the code is interrupted (exit code 124; the session's state "
        "is kept where possible). Default 30.\"}},"
        "\"required\":[\"code\"]},"
        "\"annotations\":{\"title\":\"Run code in a sandbox\",\"readOnlyHint\":false,"
        "\"destructiveHint\":false,\"idempotentHint\":false,\"openWorldHint\":";

static const char after_open_world[] =
        "}},"
        "{\"name\":\"session\",\"title\":\"Manage sandbox sessions\","
        "\"description\":\"Look at and control the sessions of the run tool. list: all sessions. "
        "environments: what env can be. history: past runs of a session. wait: go on waiting for a run "
        "that was answered early, and get its result. interrupt: stop the running code, keep the state. "
        "rollback: take its Python back to an earlier checkpoint, if there is one; files stay. "
        "kill: end the session; the next run with its name starts fresh. reset: the same, whether or not the "
        "session exists. save: keep its state on disk now (this is also done by itself). snapshots: what is "
        "kept. restore: make a session, called name or as before, from what was kept of session. "
        "variables: what the session's interpreters hold; with name that variable in full.\","
        "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
        "\"action\":{\"type\":\"string\","
        "\"enum\":[\"list\",\"environments\",\"history\",\"wait\",\"interrupt\",\"rollback\",\"kill\",\"reset\","
        "\"save\",\"snapshots\",\"restore\",\"variables\"],"
        "\"description\":\"What to do.\"},"
        "\"session\":{\"type\":\"string\","
        "\"description\":\"Name or id of the session; needed for all actions but list, environments and "
        "snapshots.\"},"
        "\"name\":{\"type\":\"string\","
        "\"description\":\"restore: name of the new session, if it is another. variables: the one to see in full.\"},"
        "\"steps\":{\"type\":\"integer\","
        "\"description\":\"rollback: how many checkpoints. Default 1.\"}},"
        "\"required\":[\"action\"]},"
        "\"annotations\":{\"title\":\"Manage sandbox sessions\",\"readOnlyHint\":false,"
        "\"destructiveHint\":true,\"idempotentHint\":false,\"openWorldHint\":false}}]";

/* What an environment of the list may reach; NULL: nothing. */
static const char *network_of(json_object *environments, size_t i, const char **ret_name) {
        struct {
                const char *name, *network;
        } e = {};
        static const JsonField table[] = {
                { "name", JSON_KIND_STRING, offsetof(typeof(e), name), JSON_MANDATORY },
                { "network", JSON_KIND_STRING, offsetof(typeof(e), network) },
                {},
        };

        if (json_dispatch(json_object_array_get_idx(environments, i), table, JSON_UNKNOWN_IGNORE, &e, NULL) < 0 ||
            !e.network || streq(e.network, "none") || streq(e.network, "nothing"))
                return NULL;
        *ret_name = e.name;
        return e.network;
}

/* At most RULES_MAX bytes, cut between two rules where that can be, and never in a character. */
static void put_rules(Buffer *b, const char *network) {
        size_t n = MIN(strlen(network), (size_t) RULES_MAX), cut = n;

        if (network[n]) {
                while (cut > 0 && network[cut] != ',')
                        cut--;
                for (n = cut > 0 ? cut : n; n > 0 && (network[n] & 0xc0) == 0x80; n--)
                        ;
        }
        emit(b, "%.*s%s", (int) n, network, network[n] ? " and more" : "");
}

static bool told_before(json_object *environments, size_t i, const char *network) {
        const char *name;

        for (size_t k = 0; k < i; k++)
                if (streq_ptr(network_of(environments, k, &name), network))
                        return true;
        return false;
}

/* "x, y may reach a.example; z may reach b.example": the environments that may reach the same as the i-th together. */
static void put_same(Buffer *b, json_object *environments, size_t i, const char *name, const char *network) {
        size_t n = json_object_array_length(environments);

        emit(b, "%s%s", buffer_size(b) > 0 ? "; " : NETWORK_LEAD, name);
        for (size_t k = i + 1; k < n && buffer_size(b) <= NETWORK_MAX; k++)
                if (streq_ptr(network_of(environments, k, &name), network))
                        emit(b, ", %s", name);
        emit(b, " may reach ");
        put_rules(b, network);
}

/* True: something may be reached, or that is not known. */
static bool describe_network(Buffer *b, json_object *reply) {
        json_object *environments = NULL;

        if (!reply || !json_object_object_get_ex(reply, "environments", &environments) ||
            !json_object_is_type(environments, json_type_array)) {
                emit(b, "There is no network but what an environment allows (see the session tool's action "
                        "environments)");
                return true;
        }

        for (size_t i = 0; i < json_object_array_length(environments) && buffer_size(b) <= NETWORK_MAX; i++) {
                const char *name, *network = network_of(environments, i, &name);

                if (network && !told_before(environments, i, network))
                        put_same(b, environments, i, name, network);
        }
        if (buffer_size(b) == 0) {
                emit(b, "There is no network");
                return false;
        }
        emit(b, buffer_size(b) > NETWORK_MAX ? "; for others see the session tool's action environments"
                                             : "; nothing else may be reached");
        return true;
}

/* As a part of a JSON string. */
static void put_escaped(Buffer *b, const Buffer *text) {
        _cleanup_(buffer_done) Buffer string = {};
        JsonWriter w = JSON_WRITER(&string);

        json_write_bytes(&w, /* key= */ NULL, buffer_data(text), buffer_size(text));
        must(w.error);
        must(buffer_append(b, buffer_data(&string) + 1, buffer_size(&string) - 2));
}

char *tools_list_text(json_object *environments) {
        _cleanup_(buffer_done) Buffer network = {};
        bool open = describe_network(&network, environments);
        Buffer b = {};
        char *text;

        must(buffer_append_str(&b, before_network));
        put_escaped(&b, &network);
        must(buffer_append_str(&b, before_open_world));
        must(buffer_append_str(&b, open ? "true" : "false"));
        must(buffer_append_str(&b, after_open_world));
        must(buffer_take(&b, &text, /* ret_size= */ NULL));
        return text;
}
