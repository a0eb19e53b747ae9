/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a jail sees of the store that its environment's programs are in: the paths of a closure and nothing else.
 *
 * bubblewrap binds the whole store. It could bind the paths one by one, but it reads the table of mounts after each,
 * which makes that quadratic: half a second for three hundred. So the agent, before anything else runs in the jail,
 * makes a user and a mount namespace and covers the store there with a read-only tmpfs that the paths are bound in. In
 * that namespace what was bound by bubblewrap is locked: nobody may uncover what a mount hides (mount_namespaces(7)).
 */

/* list_fd is sandboxd's (daemon/closure.h): the store, and names in it, each with its NUL. Leaves the process with all
 * capabilities in the new user namespace, to be dropped. Negative errno; what failed has been logged. */
int store_view_make(int list_fd);
