/* SPDX-License-Identifier: MIT */

/* Introspection, and the errors for calls that nobody serves. Everything here answers at once. */

#include <errno.h>

#include "varlink-service.h"

static const char service_idl[] =
        "# The Varlink Service Interface is provided by every varlink service.\n"
        "interface org.varlink.service\n"
        "\n"
        "method GetInfo() -> (\n"
        "  vendor: string,\n"
        "  product: string,\n"
        "  version: string,\n"
        "  url: string,\n"
        "  interfaces: []string\n"
        ")\n"
        "method GetInterfaceDescription(interface: string) -> (description: string)\n"
        "\n"
        "error InterfaceNotFound (interface: string)\n"
        "error MethodNotFound (method: string)\n"
        "error MethodNotImplemented (method: string)\n"
        "error InvalidParameter (parameter: string)\n"
        "error PermissionDenied ()\n"
        "error ExpectedMore ()\n";

bool varlink_method_is_in(const char *method, const char *interface) {
        const char *dot = strrchr(method, '.');
        size_t n = strlen(interface);

        return dot && (size_t) (dot - method) == n && strncmp(method, interface, n) == 0;
}

static int reply_with_string(VarlinkLink *l, const char *error, const char *key, const char *value,
                             size_t size) {
        _cleanup_json_ json_object *o = NULL;
        int r;

        o = json_object_new_object();
        if (!o)
                return -ENOMEM;

        r = json_put_bytes(o, key, value, size);
        if (r < 0)
                return r;

        return error ? varlink_error(l, error, o) : varlink_reply(l, o);
}

int varlink_service_unknown(VarlinkLink *l, const VarlinkServiceInfo *info, const char *method) {
        const char *dot = strrchr(method, '.');

        if (dot && !varlink_method_is_in(method, info->interface) &&
            !varlink_method_is_in(method, VARLINK_SERVICE_INTERFACE))
                return reply_with_string(l, VARLINK_ERROR_INTERFACE_NOT_FOUND, "interface", method,
                                         (size_t) (dot - method));

        return reply_with_string(l, VARLINK_ERROR_METHOD_NOT_FOUND, "method", method, strlen(method));
}

static int get_info(VarlinkLink *l, const VarlinkServiceInfo *info) {
        _cleanup_json_ json_object *o = NULL;
        json_object *interfaces;
        int r;

        o = json_object_new_object();
        interfaces = json_object_new_array();
        if (!o || !interfaces) {
                json_object_put(interfaces);
                return -ENOMEM;
        }

        r = json_put_object(o, "interfaces", interfaces);
        if (r < 0)
                return r;

        if (json_put_string(o, "vendor", info->vendor) < 0 ||
            json_put_string(o, "product", info->product) < 0 ||
            json_put_string(o, "version", info->version) < 0 ||
            json_put_string(o, "url", info->url) < 0 ||
            json_array_put_string(interfaces, VARLINK_SERVICE_INTERFACE) < 0 ||
            json_array_put_string(interfaces, info->interface) < 0)
                return -ENOMEM;

        return varlink_reply(l, o);
}

static int get_interface_description(VarlinkLink *l, const VarlinkServiceInfo *info,
                                     json_object *parameters) {
        struct {
                const char *interface;
        } p = {};
        static const JsonField table[] = {
                { "interface", JSON_KIND_STRING, offsetof(__typeof__(p), interface), JSON_MANDATORY },
                {},
        };
        const char *description, *field;

        if (json_dispatch(parameters, table, JSON_UNKNOWN_REFUSE, &p, &field) < 0)
                return varlink_error_invalid(l, field, "Only 'interface', a string, is expected.");

        if (streq(p.interface, info->interface))
                description = info->description;
        else if (streq(p.interface, VARLINK_SERVICE_INTERFACE))
                description = service_idl;
        else
                return reply_with_string(l, VARLINK_ERROR_INTERFACE_NOT_FOUND, "interface", p.interface,
                                         strlen(p.interface));

        return reply_with_string(l, NULL, "description", description, strlen(description));
}

int varlink_service_call(VarlinkLink *l, const VarlinkServiceInfo *info, const VarlinkCall *call) {
        if (streq(call->method, VARLINK_SERVICE_INTERFACE ".GetInfo"))
                return get_info(l, info);
        if (streq(call->method, VARLINK_SERVICE_INTERFACE ".GetInterfaceDescription"))
                return get_interface_description(l, info, call->parameters);

        return varlink_service_unknown(l, info, call->method);
}
