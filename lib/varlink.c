/* SPDX-License-Identifier: MIT */

/*
 * Parsing and building of single varlink messages. A parsed call or reply owns its JSON object and lends
 * out parts of it. Members of a call that we do not know are refused (among them "upgrade", which we do not
 * do); those of a reply are ignored, because a newer daemon may say more.
 */

#include <errno.h>

#include "varlink.h"

/* Of a method or error name; they are echoed in error replies. */
#define SYMBOL_MAX 255U

static bool symbol_is_valid(const char *s) {
        size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_");

        return n > 0 && n <= SYMBOL_MAX && s[n] == 0;
}

int varlink_call_parse(const char *data, size_t size, VarlinkCall *ret) {
        struct {
                const char *method;
                json_object *parameters;
                bool more, oneway;
        } p = {};
        static const JsonField table[] = {
                { "method",     JSON_KIND_STRING, offsetof(__typeof__(p), method),     JSON_MANDATORY },
                { "parameters", JSON_KIND_OBJECT, offsetof(__typeof__(p), parameters), 0 },
                { "more",       JSON_KIND_BOOL,   offsetof(__typeof__(p), more),       0 },
                { "oneway",     JSON_KIND_BOOL,   offsetof(__typeof__(p), oneway),     0 },
                {},
        };
        _cleanup_json_ json_object *message = NULL;
        int r;

        r = json_parse(data, size, &message, NULL);
        if (r < 0)
                return r;

        r = json_dispatch(message, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0 || !symbol_is_valid(p.method) || (p.more && p.oneway))
                return -EBADMSG;

        if (!p.parameters) {
                p.parameters = json_object_new_object();
                if (!p.parameters)
                        return -ENOMEM;

                r = json_put_object(message, "parameters", p.parameters);
                if (r < 0)
                        return r;
        }

        *ret = (VarlinkCall) {
                .message = TAKE_PTR(message),
                .method = p.method,
                .parameters = p.parameters,
                .flags = (p.more ? VARLINK_MORE : 0) | (p.oneway ? VARLINK_ONEWAY : 0),
        };
        return 0;
}

void varlink_call_done(VarlinkCall *c) {
        json_object_putp(&c->message);
        *c = (VarlinkCall) {};
}

int varlink_reply_parse(const char *data, size_t size, VarlinkReply *ret) {
        struct {
                const char *error;
                json_object *parameters;
                bool continues;
        } p = {};
        static const JsonField table[] = {
                { "error",      JSON_KIND_STRING, offsetof(__typeof__(p), error),      0 },
                { "parameters", JSON_KIND_OBJECT, offsetof(__typeof__(p), parameters), 0 },
                { "continues",  JSON_KIND_BOOL,   offsetof(__typeof__(p), continues),  0 },
                {},
        };
        _cleanup_json_ json_object *message = NULL;
        int r;

        r = json_parse(data, size, &message, NULL);
        if (r < 0)
                return r;

        r = json_dispatch(message, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0 || (p.error && !symbol_is_valid(p.error)) || (p.error && p.continues))
                return -EBADMSG;

        *ret = (VarlinkReply) {
                .message = TAKE_PTR(message),
                .error = p.error,
                .parameters = p.parameters,
                .flags = p.continues ? VARLINK_CONTINUES : 0,
        };
        return 0;
}

void varlink_reply_done(VarlinkReply *r) {
        json_object_putp(&r->message);
        *r = (VarlinkReply) {};
}

/*
 * {"KEY":"SYMBOL","parameters":{…},"FLAG":true}, where key and flag may be NULL. Put together by hand: an
 * object made for this would need a reference of its own to the parameters and print them once more.
 * The parameters are always there, because not every client copes with a reply that has none.
 */
static int message_append(Buffer *b, const char *key, const char *symbol, json_object *parameters,
                          const char *flag) {
        const char *text = "{}";
        size_t text_size = 2, room;
        char *start, *p;
        int r;

        if (symbol && !symbol_is_valid(symbol))
                return -EINVAL;

        if (parameters) {
                text = json_text(parameters, &text_size);
                if (!text)
                        return -ENOMEM;
        }

        room = text_size + sizeof("{\"\":\"\",\"parameters\":,\"\":true}");
        room += key ? strlen(key) + strlen(symbol) : 0;
        room += flag ? strlen(flag) : 0;
        if (room > VARLINK_MESSAGE_MAX)
                return -EMSGSIZE;

        r = buffer_reserve(b, room, &start);
        if (r < 0)
                return r;

        p = stpcpy(start, "{");
        if (key) {
                p = stpcpy(stpcpy(stpcpy(p, "\""), key), "\":\"");
                p = stpcpy(stpcpy(p, symbol), "\",");
        }
        p = mempcpy(stpcpy(p, "\"parameters\":"), text, text_size);
        if (flag)
                p = stpcpy(stpcpy(stpcpy(p, ",\""), flag), "\":true");
        p = stpcpy(p, "}");

        buffer_commit(b, (size_t) (p - start) + 1); /* with the NUL, which ends the message */
        return 0;
}

int varlink_call_append(Buffer *b, const char *method, json_object *parameters, VarlinkFlags flags) {
        const char *flag = NULL;

        if (flags & VARLINK_MORE)
                flag = "more";
        else if (flags & VARLINK_ONEWAY)
                flag = "oneway";

        return message_append(b, "method", method, parameters, flag);
}

int varlink_reply_append(Buffer *b, json_object *parameters, VarlinkFlags flags) {
        return message_append(b, NULL, NULL, parameters, flags & VARLINK_CONTINUES ? "continues" : NULL);
}

int varlink_reply_append_text(Buffer *b, const char *parameters, size_t size, VarlinkFlags flags) {
        static const char head[] = "{\"parameters\":", continues[] = ",\"continues\":true}", end[] = "}";
        bool more = flags & VARLINK_CONTINUES;
        size_t before = buffer_size(b);
        int r;

        if (size > VARLINK_MESSAGE_MAX - sizeof(head) - sizeof(continues))
                return -EMSGSIZE;

        r = buffer_append(b, head, sizeof(head) - 1);
        if (r >= 0)
                r = buffer_append(b, parameters, size);
        if (r >= 0)
                r = more ? buffer_append(b, continues, sizeof(continues)) : buffer_append(b, end, sizeof(end));
        if (r < 0)
                b->end -= buffer_size(b) - before;
        return r;
}

int varlink_error_append(Buffer *b, const char *error, json_object *parameters) {
        return message_append(b, "error", error, parameters, NULL);
}
