/* SPDX-License-Identifier: MIT */

/* The driver files, embedded: a jail has no place to read them from but its own, which code can write to. */

#include "agent/drivers.h"

#define EMBED(symbol, content)                  \
        __asm__(".section .rodata\n"            \
                ".global " symbol "\n"          \
                symbol ":\n"                    \
                content                         \
                ".byte 0\n"                     \
                ".previous\n")

#define TEXT(text) ".ascii \"" text "\"\n"
#define FILE(name) ".incbin \"agent/drivers/" name "\"\n"

/* Python compiles the driver at every start, so the half that few turns need is a string to it until then. */
EMBED("driver_python", TEXT("SELDOM = r'''") FILE("python-seldom.py") TEXT("'''\\n") FILE("python.py"));
EMBED("driver_bash", FILE("bash.sh"));
EMBED("driver_node", FILE("node.js"));
