/* SPDX-License-Identifier: MIT */

/* The driver files, embedded: a jail has no place to read them from but its own, which code can write to. */

#include "agent/drivers.h"

#define EMBED(symbol, file)                     \
        __asm__(".section .rodata\n"            \
                ".global " symbol "\n"          \
                symbol ":\n"                    \
                ".incbin \"" file "\"\n"        \
                ".byte 0\n"                     \
                ".previous\n")

EMBED("driver_python", "agent/drivers/python.py");
EMBED("driver_bash", "agent/drivers/bash.sh");
EMBED("driver_node", "agent/drivers/node.js");
