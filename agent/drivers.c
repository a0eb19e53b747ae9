/* SPDX-License-Identifier: MIT */

/* The driver files, embedded: a jail has no place to read them from but its own, which code can write to. */

#include "agent/drivers.h"

#define FILE_TEXT(file) ".incbin \"" file "\"\n"
#define EMBED(symbol, text)                     \
        __asm__(".section .rodata\n"            \
                ".global " symbol "\n"          \
                symbol ":\n"                    \
                text                            \
                ".byte 0\n"                     \
                ".previous\n")

/* Compiling its text is most of what the driver adds to python's start: most of it is strings at first. */
EMBED("driver_python",
      ".ascii \"CHECKPOINT = r'''\"\n"
      FILE_TEXT("agent/drivers/python-checkpoint.py")
      ".ascii \"'''\\n\"\n"
      ".ascii \"SELDOM = r'''\"\n"
      FILE_TEXT("agent/drivers/python-seldom.py")
      ".ascii \"'''\\nVALUES = r'''\"\n"
      FILE_TEXT("agent/drivers/python-values.py")
      ".ascii \"'''\\n\"\n"
      FILE_TEXT("agent/drivers/python.py"));
EMBED("driver_bash",
      FILE_TEXT("agent/drivers/bash.sh")
      FILE_TEXT("agent/drivers/bash-values.sh")
      FILE_TEXT("agent/drivers/bash-checkpoint.sh")
      FILE_TEXT("agent/drivers/bash-start.sh"));
/* Nor does bash parse the other half when it starts: it is an argument of the first. */
EMBED("driver_bash_seldom",
      FILE_TEXT("agent/drivers/bash-state.sh")
      FILE_TEXT("agent/drivers/bash-list.sh"));
/* An argument costs at every start, by its pages; this is sent when it is needed. A process compiles those of the
 * strings that it needs. */
#define PYTHON_STRING(name, text) ".ascii \"" name " = r'''\"\n" text ".ascii \"'''\\n\"\n"
EMBED("driver_python_commands",
      PYTHON_STRING("MAKING", FILE_TEXT("agent/drivers/python-make.py"))
      PYTHON_STRING("SAVING", FILE_TEXT("agent/drivers/python-reduce.py") FILE_TEXT("agent/drivers/python-save.py"))
      PYTHON_STRING("RESTORING", FILE_TEXT("agent/drivers/python-restore.py"))
      PYTHON_STRING("LISTING", FILE_TEXT("agent/drivers/python-list.py"))
      FILE_TEXT("agent/drivers/python-state.py"));
/* Functions; the second is called with what the others give, after the first. */
EMBED("driver_node",
      ".ascii \"(\"\n"
      FILE_TEXT("agent/drivers/node-proxy.js")
      ".ascii \")(); (\"\n"
      FILE_TEXT("agent/drivers/node.js")
      ".ascii \")((\"\n"
      FILE_TEXT("agent/drivers/node-source.js")
      ".ascii \")(), (\"\n"
      FILE_TEXT("agent/drivers/node-output.js")
      ".ascii \")(), (\"\n"
      FILE_TEXT("agent/drivers/node-values.js")
      ".ascii \")(), (\"\n"
      FILE_TEXT("agent/drivers/node-operate.js")
      ".ascii \")((\"\n"
      FILE_TEXT("agent/drivers/node-state.js")
      ".ascii \"), (\"\n"
      FILE_TEXT("agent/drivers/node-restore.js")
      ".ascii \"), (\"\n"
      FILE_TEXT("agent/drivers/node-list.js")
      ".ascii \")))\"\n");
