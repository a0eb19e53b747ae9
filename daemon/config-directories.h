/* SPDX-License-Identifier: MIT */
#pragma once

/* Lists of directories in the configuration: "environment_dirs" and "user_environment_dirs". */

#include "daemon/config-reader.h"

#define CONFIG_DIRECTORIES_MAX 16U
#define CONFIG_DIRECTORY_LENGTH_MAX 1024U

/* Where environments are looked for when the file does not say. */
#define CONFIG_ENVIRONMENT_DIRECTORY SYSCONFDIR "/nix-sandbox/environments.d"
#define CONFIG_USER_ENVIRONMENT_DIRECTORY "%h/.config/nix-sandbox/environments.d"

typedef struct ConfigDirectories {
        char *paths[CONFIG_DIRECTORIES_MAX];
        size_t n_paths;
} ConfigDirectories;

void config_directories_done(ConfigDirectories *d);

/* A list of one. -ENOMEM. */
int config_directories_set(ConfigDirectories *d, const char *path);

/* What the file says takes the place of what is there. of_user: %h, %u and %U are a user's home, name and uid. */
int config_read_directories(const ConfigReader *r, const ConfigPlace *place, json_object *value, bool of_user,
                            ConfigDirectories *d);

/* As a new member of o. -ENOMEM. */
int config_write_directories(json_object *o, const char *key, const ConfigDirectories *d);
