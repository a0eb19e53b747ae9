/* SPDX-License-Identifier: MIT */

/*
 * Rules. Parsing cuts a text into !, *. , HOST and PORT, and has network-host judge HOST; every fault gets a
 * sentence, since most are typed by people. Matching compares canonical forms.
 */

#include <errno.h>
#include <stdio.h>

#include "network-rule.h"
#include "slice.h"
#include "text.h"

#define SUBDOMAINS_PREFIX "*."

#define QUOTE_MAX 100U

static bool slice_skip(Slice *s, const char *prefix) {
        size_t n = strlen(prefix);

        if (s->size < n || memcmp(s->data, prefix, n) != 0)
                return false;

        s->data += n;
        s->size -= n;
        return true;
}

static bool slice_has(const Slice *s, const char *needle) {
        return memmem(s->data, s->size, needle, strlen(needle));
}

static void network_rule_done(NetworkRule *rule) {
        rule->name = mfree(rule->name);
}

/* Takes :PORT off the end of s, if there is one. More than one colon without brackets is an IPv6 address. */
static bool cut_port(Slice *s, Slice *ret_port) {
        const char *colon;

        if (s->size > 0 && s->data[0] == '[') {
                colon = memchr(s->data, ']', s->size);
                if (!colon || ++colon == s->data + s->size || *colon != ':')
                        return false;
        } else {
                colon = memchr(s->data, ':', s->size);
                if (!colon || memrchr(s->data, ':', s->size) != colon)
                        return false;
        }

        *ret_port = (Slice) { colon + 1, (size_t) (s->data + s->size - colon - 1) };
        s->size = (size_t) (colon - s->data);
        return true;
}

/* Why a text can be no host, from what people write instead. */
static const char *explain_host(const Slice *s) {
        if (s->size == 0)
                return "it names no host";
        if (slice_has(s, "/") || slice_has(s, "@"))
                return "a rule is a host and maybe a port, not a URL";
        if (slice_has(s, " "))
                return "it has a space";
        if (slice_has(s, "*"))
                return "* may only stand for all that is below a name, as in *.example.org";
        return "its host is neither a name nor an address";
}

static int refuse(const char **ret_fault, const char *fault) {
        *ret_fault = fault;
        return -EINVAL;
}

static int rule_set_host(NetworkRule *rule, const NetworkHost *host, const char **ret_fault) {
        if (host->is_address) {
                if (rule->subdomains)
                        return refuse(ret_fault, "nothing is below an address");

                rule->address = host->address;
                return 0;
        }

        if (rule->subdomains && !strchr(host->name, '.'))
                return refuse(ret_fault, "that is too much at once; what follows *. needs two parts, as in "
                                         "*.example.org");

        rule->name = strdup(host->name);
        rule->name_size = strlen(host->name);
        return rule->name ? 0 : -ENOMEM;
}

/* -EINVAL and what is wrong with it, or -ENOMEM. */
static int rule_parse(Slice s, NetworkRule *ret, const char **ret_fault) {
        NetworkRule rule = {};
        NetworkHost host;
        Slice port;
        int r;

        rule.exception = slice_skip(&s, "!");

        /* First, for a URL has a colon that would be taken for a port's. */
        if (slice_has(&s, "/"))
                return refuse(ret_fault, explain_host(&s));

        if (cut_port(&s, &port) && !slice_parse_port(port, &rule.port))
                return refuse(ret_fault, "its port is not a number from 1 to 65535");

        if (s.size == 1 && s.data[0] == '*')
                return refuse(ret_fault, "* would be everything; name what is needed, at most all that is below "
                                         "a name, as in *.example.org");
        rule.subdomains = slice_skip(&s, SUBDOMAINS_PREFIX);

        r = network_host_parse(s.data, s.size, &host);
        if (r == -EINVAL)
                return refuse(ret_fault, explain_host(&s));
        if (r < 0)
                return r;

        r = rule_set_host(&rule, &host, ret_fault);
        if (r < 0)
                return r;

        *ret = rule;
        return 0;
}

static int explain_fault(const char *text, size_t size, const char *why, char **reterr_why) {
        _cleanup_free_ char *copy = NULL, *quoted = NULL;

        *reterr_why = NULL;

        /* Cut at the first NUL. */
        copy = strndup(text, MIN(size, QUOTE_MAX + 1));
        if (!copy)
                return -ENOMEM;
        quoted = text_quote(copy, QUOTE_MAX);
        if (!quoted)
                return -ENOMEM;

        return text_explain(-EINVAL, reterr_why, "%s is no network rule: %s", quoted, why);
}

/* Takes the rule over. Room is made for a power of two. */
static int list_push(NetworkList *l, NetworkRule *rule) {
        NetworkRule *rules;

        if ((l->n_rules & (l->n_rules - 1)) == 0) {
                rules = reallocarray(l->rules, l->n_rules > 0 ? 2 * l->n_rules : 1, sizeof(NetworkRule));
                if (!rules) {
                        network_rule_done(rule);
                        return -ENOMEM;
                }
                l->rules = rules;
        }

        l->rules[l->n_rules++] = *rule;
        return 0;
}

int network_list_add(NetworkList *l, const char *text, size_t size, char **reterr_why) {
        NetworkRule rule;
        const char *fault;
        int r;

        if (l->n_rules >= NETWORK_RULES_MAX)
                return text_explain(-E2BIG, reterr_why, "more than %u network rules", NETWORK_RULES_MAX);

        *reterr_why = NULL;
        r = rule_parse((Slice) { text, size }, &rule, &fault);
        if (r == -EINVAL)
                return explain_fault(text, size, fault, reterr_why);
        if (r < 0)
                return r;

        return list_push(l, &rule);
}

static void list_cut(NetworkList *l, size_t n_rules) {
        while (l->n_rules > n_rules)
                network_rule_done(l->rules + --l->n_rules);
}

int network_list_append(NetworkList *l, const NetworkList *from) {
        size_t before = l->n_rules;

        if (from->n_rules > NETWORK_RULES_MAX - before)
                return -E2BIG;

        for (size_t i = 0; i < from->n_rules; i++) {
                NetworkRule rule = from->rules[i];

                if (rule.name)
                        rule.name = strdup(rule.name);
                if ((!rule.name && from->rules[i].name) || list_push(l, &rule) < 0) {
                        list_cut(l, before);
                        return -ENOMEM;
                }
        }
        return 0;
}

int network_list_copy(const NetworkList *from, NetworkList *ret) {
        NetworkList l = {};
        int r;

        r = network_list_append(&l, from);
        if (r >= 0)
                *ret = l;
        else
                network_list_done(&l);
        return r;
}

void network_list_done(NetworkList *l) {
        list_cut(l, 0);
        l->rules = mfree(l->rules);
}

static bool matches_name(const NetworkRule *rule, const char *name, size_t size) {
        if (!rule->name || size < rule->name_size)
                return false;
        if (!rule->subdomains)
                return size == rule->name_size && memcmp(name, rule->name, size) == 0;

        return size > rule->name_size && name[size - rule->name_size - 1] == '.' &&
               memcmp(name + size - rule->name_size, rule->name, rule->name_size) == 0;
}

static bool matches_port(const NetworkRule *rule, uint16_t port) {
        if (rule->port > 0)
                return port == rule->port;

        return rule->exception || port == 443 || port == 80;
}

NetworkMatch network_list_match(const NetworkList *l, const NetworkHost *host, uint16_t port) {
        NetworkMatch match = NETWORK_MATCH_NONE;
        size_t size = strlen(host->name);

        for (size_t i = 0; i < l->n_rules; i++) {
                const NetworkRule *rule = l->rules + i;

                if (!(host->is_address ? !rule->name && network_address_equal(&rule->address, &host->address) :
                                         matches_name(rule, host->name, size)) ||
                    !matches_port(rule, port))
                        continue;

                if (rule->exception)
                        return NETWORK_MATCH_EXCEPTION;
                match = NETWORK_MATCH_ALLOW;
        }

        return match;
}

const char *network_rule_format(const NetworkRule *rule, char ret[static NETWORK_RULE_SIZE]) {
        char address[NETWORK_HOST_SIZE], port[sizeof(":65535")] = "";

        if (rule->port > 0)
                (void) snprintf(port, sizeof(port), ":%u", rule->port);

        (void) snprintf(ret, NETWORK_RULE_SIZE, "%s%s%s%s", rule->exception ? "!" : "",
                        rule->subdomains ? SUBDOMAINS_PREFIX : "",
                        rule->name ?: network_address_format(&rule->address, address), port);
        return ret;
}
