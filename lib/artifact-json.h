/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What was read of directories of artifacts, on its way from the process that read it as a user to the daemon, which
 * trusts no word of it. Stamps stay behind: the daemon asks anew each time.
 */

#include "artifact-directory.h"
#include "json.h"

#define ARTIFACT_DIRECTORIES_MAX 16U

int artifact_directories_to_json(const ArtifactDirectory *directories, size_t n, json_object **ret);

/* -EINVAL: it is nothing of the kind. ret has room for ARTIFACT_DIRECTORIES_MAX. */
int artifact_directories_from_json(json_object *o, ArtifactDirectory *ret, size_t *ret_n);
