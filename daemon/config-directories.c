/* SPDX-License-Identifier: MIT */

/* Lists of directories, checked as far as that can be done without looking whether they are there. */

#include "daemon/config-directories.h"

#include <errno.h>

#include "daemon/project.h"

void config_directories_done(ConfigDirectories *d) {
        for (size_t i = 0; i < d->n_paths; i++)
                free(d->paths[i]);
        *d = (ConfigDirectories){};
}

static int add(ConfigDirectories *d, const char *path) {
        d->paths[d->n_paths] = strdup(path);
        if (!d->paths[d->n_paths])
                return -ENOMEM;
        d->n_paths++;
        return 0;
}

int config_directories_set(ConfigDirectories *d, const char *path) {
        config_directories_done(d);
        return add(d, path);
}

/* With a home of "/" in the place of "%h". What a name is made of cannot be known here. */
static bool user_path_is_plain(const char *path) {
        char plain[CONFIG_DIRECTORY_LENGTH_MAX + 1];
        size_t n = 0;

        for (const char *p = path; *p; p++)
                if (*p != '%')
                        plain[n++] = *p;
                else if (*++p == 'u' || *p == 'U' || *p == '%')
                        plain[n++] = 'x';
                else if (*p != 'h' || p != path + 1)
                        return false;
        plain[n] = '\0';
        return project_path_is_plain(plain);
}

static int read_directory(const ConfigReader *r, const ConfigPlace *place, json_object *value, bool of_user,
                          ConfigDirectories *d) {
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (strlen(s) > CONFIG_DIRECTORY_LENGTH_MAX)
                return config_error(r, place, "a directory has at most %u bytes", CONFIG_DIRECTORY_LENGTH_MAX);
        if (of_user && !user_path_is_plain(s))
                return config_error(r, place,
                                    "a directory is an absolute path without \"..\", or begins with %%h; %%u, %%U and "
                                    "%%%% are known besides");
        if (!of_user && !project_path_is_plain(s))
                return config_error(r, place, "a directory is an absolute path without \"..\"");
        return add(d, s);
}

int config_read_directories(const ConfigReader *r, const ConfigPlace *place, json_object *value, bool of_user,
                            ConfigDirectories *d) {
        int k = 0;

        if (!json_object_is_type(value, json_type_array))
                return config_error(r, place, "must be a list of directories");
        if (json_object_array_length(value) > CONFIG_DIRECTORIES_MAX)
                return config_error(r, place, "must not have more than %u directories", CONFIG_DIRECTORIES_MAX);

        config_directories_done(d);
        for (size_t i = 0; k >= 0 && i < json_object_array_length(value); i++)
                k = read_directory(r, place, json_object_array_get_idx(value, i), of_user, d);
        return k;
}

int config_write_directories(json_object *o, const char *key, const ConfigDirectories *d) {
        _cleanup_json_ json_object *list = json_object_new_array();
        int r = list ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < d->n_paths; i++)
                r = json_array_put_string(list, d->paths[i]);
        return r < 0 ? r : json_put_object(o, key, TAKE_PTR(list));
}
