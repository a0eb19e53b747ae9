/* SPDX-License-Identifier: MIT */
#pragma once

/* Text of daemon/io.nixsandbox.varlink, NUL-terminated. */
extern const char sandbox_idl[];
