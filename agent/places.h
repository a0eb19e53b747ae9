/* SPDX-License-Identifier: MIT */
#pragma once

/* The writable places of the jail, and whether there is room in them. */

/* The first one that has no free block left; NULL: none. Static. */
const char *places_find_full(void);
