/* SPDX-License-Identifier: MIT */
#pragma once

/* The texts of the drivers (drivers/), NUL-terminated. */
extern const char driver_python[], driver_bash[], driver_node[];
