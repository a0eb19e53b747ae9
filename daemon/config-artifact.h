/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What an artifact says, by the rules of the configuration: environment.json is an entry of "environments" that
 * stands for itself, with its name, its root and its closure. Reads no file: the texts are in the Artifact.
 */

#include "daemon/environment.h"
#include "daemon/network-sets.h"
#include "lib/artifact-directory.h"

#define CONFIG_ARTIFACT_VERSION 1

/* *ret is complete, as after environment_load(). -EINVAL: *reterr_why (allocated, NULL on OOM) says what is wrong. */
int config_read_artifact(const Artifact *a, NetworkSource *source, Environment **ret, char **reterr_why);
