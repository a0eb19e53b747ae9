/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where bubblewrap finds what it could not reach, or only at a price, under its own path: a directory that is there on
 * every machine and that jails have nothing of. sandboxd binds a root caller's project over it; sandbox-closure makes
 * it a tmpfs with the paths of an environment's store, /dev, and that project below.
 */

#define JAIL_PLACE "/sys"
#define JAIL_PLACE_STORE JAIL_PLACE "/store"
#define JAIL_PLACE_PROJECT JAIL_PLACE "/project"
#define JAIL_PLACE_DEV JAIL_PLACE "/dev"

/* sandbox-closure's second argument: whether there is such a project. */
#define JAIL_PLACE_HAS_PROJECT "project"
#define JAIL_PLACE_HAS_NONE "-"
