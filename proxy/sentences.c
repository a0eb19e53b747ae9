/* SPDX-License-Identifier: MIT */

#include "proxy/sentences.h"

#include <stdarg.h>
#include <stdio.h>

static char *sentence(const char *format, ...) _printf_(1, 2);

static char *sentence(const char *format, ...) {
        va_list args;
        char *text;
        int r;

        va_start(args, format);
        r = vasprintf(&text, format, args);
        va_end(args);
        return r < 0 ? NULL : text;
}

static char *sentence_special(const char *where, const char *address, AddressClass class) {
        if (class == _ADDRESS_CLASS_INVALID)
                return sentence("%s leads to %s, and whether that is an address of this host cannot be told now; try "
                                "again.", where, address);
        return sentence("%s is in the allow list, but leads to %s, which is %s. A name may lead to public addresses "
                        "only; to allow this, the allow list of the environment has to have the address itself.",
                        where, address, address_class_to_string(class));
}

char *sentence_refused(NetworkVerdict verdict, const char *where, const char *address, AddressClass class) {
        switch (verdict) {
        case NETWORK_REFUSED_NARROWED:
                return sentence("%s is in the allow list of the environment, but not in the narrower one that this "
                                "session was started with. Start a session that asks for it too.", where);
        case NETWORK_REFUSED_EXCEPTION:
                if (address)
                        return sentence("%s leads to %s, which is an exception of the allow list: it is refused "
                                        "whatever else is allowed.", where, address);
                return sentence("%s is an exception of the allow list: it is refused whatever else is allowed.",
                                where);
        case NETWORK_REFUSED_SPECIAL_ADDRESS:
                return sentence_special(where, address, class);
        case NETWORK_REFUSED_NOT_LISTED:
        case NETWORK_ALLOWED:
        case _NETWORK_VERDICT_MAX:
        case _NETWORK_VERDICT_INVALID:
        default:
                return sentence("%s is not in the allow list of this session's environment. Whoever maintains the "
                                "environment can add it there, or an administrator can grant it to this session.",
                                where);
        }
}

char *sentence_bound(MeterVerdict verdict, const char *where) {
        return sentence("%s was not connected to: %s.%s", where, meter_verdict_to_string(verdict),
                        verdict == METER_CONNECTIONS ? " Close some, or try again later." : "");
}

char *sentence_secret(const char *where) {
        return sentence("%s has a credential, which the sandbox adds to plain HTTP requests only, so there is no "
                        "tunnel to it. Send requests for http:// URLs to the proxy instead.", where);
}

char *sentence_unresolved(const char *where, int error) {
        if (error == -ENOENT)
                return sentence("%s is allowed, but there is no such host: its name has no address.", where);
        return sentence("%s is allowed, but its name could not be looked up: %s.", where, strerror(-error));
}

char *sentence_unreachable(const char *where, int error) {
        return sentence("%s is allowed, but could not be reached: %s.", where, strerror(-error));
}
