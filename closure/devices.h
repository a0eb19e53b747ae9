/* SPDX-License-Identifier: MIT */
#pragma once

/* The /dev of a jail with a view of a store, at JAIL_PLACE_DEV. Negative errno; what failed has been said. */

/* What is of the tmpfs itself, which can still be written to. */
int devices_prepare(void);

/* What is mounted, after the flags of the view are set: they forbid devices. */
int devices_show(void);
