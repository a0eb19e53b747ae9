/* SPDX-License-Identifier: MIT */
#pragma once

/* The texts of the drivers (drivers/), NUL-terminated. Those of *_commands follow by "load" (driver-protocol.h). */
extern const char driver_python[], driver_python_commands[], driver_bash[], driver_bash_seldom[], driver_node[];
