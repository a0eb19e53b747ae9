/* SPDX-License-Identifier: MIT */

/* The IDL file itself, embedded: what GetInterfaceDescription answers is what clients are written against. */

#include "daemon/idl.h"

__asm__(".section .rodata\n"
        ".global sandbox_idl\n"
        "sandbox_idl:\n"
        ".incbin \"daemon/io.nixsandbox.varlink\"\n"
        ".byte 0\n"
        ".previous\n");
