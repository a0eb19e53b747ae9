/* SPDX-License-Identifier: MIT */

/*
 * The fields of a request. Host must say what the target says (RFC 9112, section 3.2.2, lets a proxy ignore it; but
 * a difference is never an accident worth serving). The body's length must be said in one way, once (section 6.3).
 * Fields for the next hop alone (RFC 9110, section 7.6.1) are dropped, and those that Connection names; it must not
 * name what the origin needs to see the request as we do.
 */

#include "http-fields.h"

#define OPTIONS_MAX 100U
#define LENGTH_DIGITS_MAX 19U

typedef enum Meaning {
        MEANING_NONE,
        MEANING_DROPPED,
        MEANING_HOST,
        MEANING_LENGTH,
        MEANING_CODING,
        MEANING_CONNECTION,
        MEANING_EXPECT,
        _MEANING_MAX,
} Meaning;

/* Besides all that begin with Proxy-. */
static const struct {
        const char *name;
        Meaning meaning;
} meanings[] = {
        { "Host", MEANING_HOST },
        { "Content-Length", MEANING_LENGTH },
        { "Transfer-Encoding", MEANING_CODING },
        { "Connection", MEANING_CONNECTION },
        { "Expect", MEANING_EXPECT },
        { "Keep-Alive", MEANING_DROPPED },
        { "TE", MEANING_DROPPED },
        { "Trailer", MEANING_DROPPED },         /* trailers are dropped, too */
        { "Upgrade", MEANING_DROPPED },
        { "HTTP2-Settings", MEANING_DROPPED },  /* RFC 7540, section 3.2.1: belongs to Upgrade: h2c */
};

/* What Connection must not take out of the request; Expect would leave the client waiting. */
static const char *const needed[] = { "Host", "Content-Length", "Transfer-Encoding", "Authorization", "Expect" };

static Meaning field_meaning(Slice name) {
        for (size_t i = 0; i < ELEMENTSOF(meanings); i++)
                if (slice_is(name, meanings[i].name))
                        return meanings[i].meaning;

        return slice_starts_with(name, "Proxy-") ? MEANING_DROPPED : MEANING_NONE;
}

/* What there may be one of only; NULL where there is none. */
typedef struct Singles {
        const HttpField *field[_MEANING_MAX];
        unsigned n[_MEANING_MAX];
} Singles;

static HttpError understand_host(const HttpRequest *r, const Singles *s) {
        const HttpAuthority *target = &r->target.authority;
        HttpAuthority host;

        if (s->n[MEANING_HOST] > 1)
                return HTTP_E_HOST_TWICE;
        if (s->n[MEANING_HOST] == 0)
                return r->minor == 0 ? HTTP_OK : HTTP_E_HOST_MISSING;
        if (http_authority_parse(s->field[MEANING_HOST]->value, &host) != HTTP_OK)
                return HTTP_E_HOST_OTHER;

        /* CONNECT has no default port. Java leaves 443 out; the field ends here, so it means the target's. */
        if (!host.has_port)
                host.port = r->is_connect ? target->port : 80;
        return http_authority_same_host(&host, target) && host.port == target->port ? HTTP_OK : HTTP_E_HOST_OTHER;
}

static HttpError parse_length(Slice text, uint64_t *ret) {
        uint64_t length = 0;

        if (text.size == 0 || text.size > LENGTH_DIGITS_MAX)
                return HTTP_E_LENGTH;

        for (size_t i = 0; i < text.size; i++) {
                if (!char_is_digit(text.data[i]))
                        return HTTP_E_LENGTH;
                length = length * 10 + (uint64_t) (text.data[i] - '0');        /* 19 digits fit */
        }
        if (length > HTTP_LENGTH_MAX)
                return HTTP_E_LENGTH;

        *ret = length;
        return HTTP_OK;
}

static HttpError understand_body(HttpRequest *r, const Singles *s) {
        HttpError e;

        r->body = HTTP_BODY_NONE;
        r->length = 0;

        if (s->n[MEANING_LENGTH] > 0 && s->n[MEANING_CODING] > 0)
                return HTTP_E_LENGTH_AND_CODING;
        if (s->n[MEANING_LENGTH] > 1)
                return HTTP_E_LENGTH_TWICE;
        if (s->n[MEANING_CODING] > 1)
                return HTTP_E_CODING_TWICE;

        if (s->n[MEANING_LENGTH] > 0) {
                e = parse_length(s->field[MEANING_LENGTH]->value, &r->length);
                if (e != HTTP_OK)
                        return e;
                r->body = HTTP_BODY_LENGTH;
        }
        if (s->n[MEANING_CODING] > 0) {
                if (r->minor == 0)
                        return HTTP_E_CODING_OLD;
                if (!slice_is(s->field[MEANING_CODING]->value, "chunked"))
                        return HTTP_E_CODING;
                r->body = HTTP_BODY_CHUNKED;
        }

        return r->is_connect && (r->body == HTTP_BODY_CHUNKED || r->length > 0) ? HTTP_E_CONNECT_BODY : HTTP_OK;
}

/* RFC 9110, section 10.1.1: means nothing in HTTP/1.0, or where there is no body to wait with. */
static HttpError understand_expect(HttpRequest *r, const Singles *s) {
        r->expects_continue = false;

        if (s->n[MEANING_EXPECT] == 0 || r->minor == 0)
                return HTTP_OK;
        if (s->n[MEANING_EXPECT] > 1 || !slice_is(s->field[MEANING_EXPECT]->value, "100-continue"))
                return HTTP_E_EXPECT;

        r->expects_continue = r->body == HTTP_BODY_CHUNKED || r->length > 0;
        return HTTP_OK;
}

static HttpError drop_named(HttpRequest *r, Slice name) {
        if (!slice_is_token(name))
                return HTTP_E_CONNECTION;
        for (size_t i = 0; i < ELEMENTSOF(needed); i++)
                if (slice_is(name, needed[i]))
                        return HTTP_E_CONNECTION_NAMES;

        for (size_t i = 0; i < r->n_fields; i++)
                if (slice_equal_fold(r->fields[i].name, name))
                        r->fields[i].is_dropped = true;
        return HTTP_OK;
}

/* Empty members of a list are allowed (RFC 9110, section 5.6.1.2). All members of all lists are counted, because
 * each costs a look at every field. */
static HttpError understand_connection(HttpRequest *r, Slice value, size_t *n_options) {
        Slice option;
        HttpError e;

        while (value.size > 0) {
                (void) slice_split(value, ',', &option, &value);
                option = slice_trim(option);
                if (++*n_options > OPTIONS_MAX)
                        return HTTP_E_FIELDS_MANY;
                e = option.size > 0 ? drop_named(r, option) : HTTP_OK;
                if (e != HTTP_OK)
                        return e;
        }

        return HTTP_OK;
}

HttpError http_fields_understand(HttpRequest *r) {
        size_t n_options = 0;
        Singles s = {};
        HttpError e;

        for (size_t i = 0; i < r->n_fields; i++) {
                Meaning m = field_meaning(r->fields[i].name);

                s.field[m] = &r->fields[i];
                s.n[m]++;
                r->fields[i].is_dropped = m != MEANING_NONE;
        }

        e = understand_host(r, &s);
        if (e == HTTP_OK)
                e = understand_body(r, &s);
        if (e == HTTP_OK)
                e = understand_expect(r, &s);

        for (size_t i = 0; e == HTTP_OK && i < r->n_fields; i++)
                if (slice_is(r->fields[i].name, "Connection"))
                        e = understand_connection(r, r->fields[i].value, &n_options);
        return e;
}
