/* SPDX-License-Identifier: MIT */

/*
 * The daemon cannot look into a jail's file systems, and ENOSPC is only told to the program that wrote; so the
 * agent looks. All of these are tmpfs (daemon/limits.h), whose statvfs(3) waits for nobody.
 */

#include "agent/places.h"

#include <sys/statvfs.h>

#include "lib/agent-protocol.h"
#include "lib/macro.h"

const char *places_find_full(void) {
        static const char *const places[] = { AGENT_PLACES };

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                struct statvfs s;

                /* No blocks at all is a tmpfs without a bound. */
                if (statvfs(places[i], &s) == 0 && s.f_blocks > 0 && s.f_bavail == 0)
                        return places[i];
        }
        return NULL;
}
