/* SPDX-License-Identifier: MIT */

#include "daemon/proxy-report.h"

#include <string.h>

#define TEXT_MAX 300U /* of a host, quoted: more than the proxy makes */

static bool text_is_printable(const char *s) {
        if (!*s || strlen(s) > TEXT_MAX)
                return false;
        for (; *s; s++)
                if (*s < ' ' || *s > '~')
                        return false;
        return true;
}

int proxy_report_parse_refusal(const char *data, size_t size, ProxyRefusal *ret, json_object **ret_json) {
        struct {
                const char *host, *address, *verdict;
                uint64_t port, count;
        } p = {};
        static const JsonField table[] = {
                { "host", JSON_KIND_STRING, offsetof(typeof(p), host), JSON_MANDATORY },
                { "port", JSON_KIND_UINT, offsetof(typeof(p), port), JSON_MANDATORY },
                { "address", JSON_KIND_STRING, offsetof(typeof(p), address) },
                { "verdict", JSON_KIND_STRING, offsetof(typeof(p), verdict), JSON_MANDATORY },
                { "count", JSON_KIND_UINT, offsetof(typeof(p), count), JSON_MANDATORY },
                {},
        };
        _cleanup_json_ json_object *o = NULL;
        NetworkVerdict verdict;
        int r;

        r = json_parse(data, size, &o, NULL);
        if (r >= 0)
                r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        verdict = network_verdict_from_string(p.verdict);
        if (verdict < 0 || verdict == NETWORK_ALLOWED || p.port > UINT16_MAX || p.count == 0 || p.count > INT64_MAX ||
            !text_is_printable(p.host) || (p.address && !text_is_printable(p.address)))
                return -EINVAL;

        *ret = (ProxyRefusal){
                .host = p.host,
                .port = (uint16_t) p.port,
                .address = p.address,
                .verdict = verdict,
                .count = p.count,
        };
        *ret_json = TAKE_PTR(o);
        return 0;
}

int proxy_report_parse_usage(const char *data, size_t size, NetworkUsage *ret) {
        _cleanup_json_ json_object *o = NULL;
        int r;

        r = json_parse(data, size, &o, NULL);
        return r < 0 ? r : network_usage_from_json(o, ret);
}
