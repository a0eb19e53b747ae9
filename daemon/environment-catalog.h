/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The environments for all users: those of the configuration, and artifacts in directories, which come and go while
 * the daemon runs. Nothing is watched: whoever wants to know has the catalog look, which costs a few stat(2) calls
 * where nothing has changed. Logs what is new, what is gone, and once for each, what is passed over.
 */

#include "daemon/config-directories.h"
#include "daemon/environment-set.h"

typedef struct EnvironmentCatalog EnvironmentCatalog;

/* Reads the directories. All but ret is borrowed. */
int environment_catalog_new(const EnvironmentTable *configured, const NetworkSets *sets,
                            const ConfigDirectories *directories, EnvironmentCatalog **ret);
EnvironmentCatalog *environment_catalog_free(EnvironmentCatalog *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(EnvironmentCatalog *, environment_catalog_free);

/* What there is now; borrowed until the next call. Where memory is too short to read anew it is what there was. */
EnvironmentSet *environment_catalog_look(EnvironmentCatalog *c);
