/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Allow lists of the network. Pure. The text of a rule is
 *
 *     [!]HOST[:PORT]
 *
 * HOST is a name, which is that name only; *.NAME, which is whatever is below NAME at any depth, but not NAME; or
 * an address, IPv6 in brackets where PORT follows. NAME has two labels at least: *.org would be half of the
 * world. (*.co.uk is not seen for what it is; who writes a list is to know.) Without PORT a rule means HTTP's
 * ports, 443 and 80. A rule with ! is an exception: what it matches is refused whatever else the list has, and
 * without PORT that is every port. So the order of rules has no meaning.
 *
 * An address matches a rule with that address, a name never does, whatever it resolves to: lib/network-policy.h.
 *
 * A list owns its rules, a rule its name; zero-initialise, network_list_done() frees. It is sent as texts of
 * network_rule_format(). Matching walks all of it: 1024 rules take 5 µs, which no connection will notice.
 */

#include "network-host.h"

#define NETWORK_RULES_MAX 1024U
#define NETWORK_RULE_SIZE (sizeof("!*.:65535") + NETWORK_NAME_MAX) /* for the text of any rule */

typedef struct NetworkRule {
        bool exception;
        bool subdomains;        /* *.NAME */
        uint16_t port;          /* 0: none is written */
        NetworkAddress address; /* AF_UNSPEC: the rule has a name */
        char *name;             /* NULL: the rule has an address */
        size_t name_size;
} NetworkRule;

typedef struct NetworkList {
        NetworkRule *rules;
        size_t n_rules;
} NetworkList;

typedef enum NetworkMatch {
        NETWORK_MATCH_NONE,
        NETWORK_MATCH_ALLOW,
        NETWORK_MATCH_EXCEPTION,
} NetworkMatch;

/*
 * Adds the rule that text is. -EINVAL if it is none, -E2BIG if the list is full: then *reterr_why is an allocated
 * sentence, with what peers wrote in it quoted and cut. -ENOMEM: it is NULL. The list is as it was on failure.
 */
int network_list_add(NetworkList *l, const char *text, size_t size, char **reterr_why);

/* Adds all rules of another one. -E2BIG: the list would have too many; -ENOMEM; then it is as it was. */
int network_list_append(NetworkList *l, const NetworkList *from);

/* *ret is set on success only. -ENOMEM. */
int network_list_copy(const NetworkList *from, NetworkList *ret);

NetworkMatch network_list_match(const NetworkList *l, const NetworkHost *host, uint16_t port);
void network_list_done(NetworkList *l);

/* The canonical text, which makes the same rule. Returns ret. */
const char *network_rule_format(const NetworkRule *rule, char ret[static NETWORK_RULE_SIZE]);
