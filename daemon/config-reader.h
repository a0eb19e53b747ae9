/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads JSON objects by tables into structures and writes them back, with errors that name the file, the
 * place and what would be right. The configuration's own tables are in config.c.
 */

#include "lib/json.h"

typedef struct ConfigReader {
        const char *file;
        char **reterr_why;
} ConfigReader;

/* Where in the file we are: a chain on the stack, from the inside out. NULL is the top. */
typedef struct ConfigPlace {
        const struct ConfigPlace *parent;
        const char *key;
} ConfigPlace;

typedef enum ConfigKind {
        CONFIG_COUNT,           /* uint64_t, whole */
        CONFIG_SECONDS,         /* uint64_t in microseconds; the file may have a fraction */
        CONFIG_NUMBER,          /* double */
        CONFIG_OTHER,           /* what read() says; not written */
} ConfigKind;

typedef struct ConfigField {
        const char *key;
        ConfigKind kind;
        size_t offset;          /* in the target; not of CONFIG_OTHER, which gets all of it */
        double min, max;
        bool zero_is_never;     /* 0 is accepted besides, and stored as UINT64_MAX or INFINITY */
        int (*read)(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);
} ConfigField;

/* Makes the sentence "file: place: text" and returns -EINVAL. The sentence is NULL when memory is short. */
int config_error(const ConfigReader *r, const ConfigPlace *place, const char *format, ...) _printf_(3, 4);

/* "file:3:14: not valid JSON", for an editor to jump to: the same for text that is none, from this place on. */
int config_syntax_error(const ConfigReader *r, const char *data, size_t offset);

/* The table ends with a NULL key. Members that are not in it are errors; those that are missing change
 * nothing. */
int config_read_object(const ConfigReader *r, const ConfigPlace *place, json_object *o,
                       const ConfigField *table, void *target);

/* -EINVAL unless it is a string; borrowed from the value. */
int config_read_string(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                       const char **ret);

/* The reverse of config_read_object(), as a new member of o. -ENOMEM. */
int config_write_object(json_object *o, const char *key, const ConfigField *table, const void *target);

/* Adds the fields of a table to an object; those whose value is 0 are left out if they cannot be 0. */
int config_write_fields(json_object *o, const ConfigField *table, const void *target);
