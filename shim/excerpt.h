/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Long text cut in the middle: head and tail are kept, because a program's output begins with what it set
 * out to do and ends with what became of it. Pure.
 */

#include "lib/buffer.h"

/* Characters (code points) of well-formed UTF-8. */
size_t text_length(const char *s, size_t size);

/*
 * Appends text in at most max characters and a line that says how many are left out. True if it was cut.
 * Never cuts a character in two.
 */
bool excerpt_append(Buffer *b, const char *s, size_t size, size_t max);
