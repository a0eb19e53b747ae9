/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The FIFOs through which drivers write and read state (driver-protocol.h), in a directory of one operation. It is in
 * /dev/shm, which every jail has, and which is no part of what is saved. The jail's code can reach them, as it
 * can reach its driver's socket: what comes through them is not believed.
 */

#include "agent/interpreter.h"

#define FIFO_DIRECTORY_LENGTH 36U       /* /dev/shm/.nix-sandbox-<14 hex digits> */

typedef enum FifoName {
        FIFO_STATE,
        FIFO_REPORT,
        _FIFO_NAME_MAX,
} FifoName;

typedef struct FifoPath {
        char text[FIFO_DIRECTORY_LENGTH + sizeof("/python.report")];
} FifoPath;

/* A new name; nothing is made. -EAGAIN. */
int fifo_directory_choose(char ret[FIFO_DIRECTORY_LENGTH + 1]);
/* Makes it, if it is not there yet. */
int fifo_directory_make(const char *directory);
/* Removes it with all that may be in it, and lets go whoever waits for the other side of one of them. */
void fifo_directory_remove(const char *directory, const Interpreter interpreters[INTERPRETERS_MAX]);

FifoPath fifo_path(const char *directory, const Interpreter *i, FifoName name);
/* Makes it and opens its reading side, non-blocking. The descriptor, or negative errno. */
int fifo_make_and_read(const FifoPath *path);
/* Makes it; the writing side can be opened when the driver has it open. */
int fifo_make(const FifoPath *path);
/* Opens the writing side, non-blocking. -ENXIO: the driver has not opened it yet. */
int fifo_write(const FifoPath *path);
