/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A part of a snapshot on its way between whoever has it and the snapshot stream (lib/snapshot-stream.h): a driver
 * behind its FIFOs, or the process that archives the workspace behind pipes, which look the same from here. Lives in
 * the operation's child and may block, but not for long with nothing happening: then this part has failed, and no
 * other.
 */

#include <sys/types.h>

#include "agent/part-report.h"
#include "agent/state-fifo.h"

#define PART_IDLE_MSEC 30000            /* user's code may compute for so long between two bytes */
#define PART_REPORT_MSEC 5000           /* from the end of the state to the report, which is short */
#define PART_ENDED_MSEC 1000            /* from the end of a driver, whose copy may go on */

typedef struct Part {
        int state, report;              /* the descriptors; -EBADF: not open, or over */
        int talk;                       /* borrowed; -EBADF: there is no driver */
        unsigned interpreter;           /* where there is one */
        pid_t archiver;                 /* 0: there is none */
        FifoPath write_path;            /* restoring: of the state, while the driver has not opened it; or "" */
        bool saving;
        bool answered, ended;           /* the driver has said done; its process is gone */
        bool gave_up;                   /* on it; whoever it is should be stopped */
        size_t text_max;
        Buffer text;                    /* the report as it came */
        PartReport result;
} Part;

#define PART_INIT ((Part) { .state = -EBADF, .report = -EBADF, .talk = -EBADF })

/* Of a driver, which is asked. fifos: the operation's directory. What goes wrong is in the result. */
void part_open_driver(Part *p, bool saving, const char *fifos, const Interpreter interpreters[INTERPRETERS_MAX],
                      unsigned k, int talk);
/* Not of a snapshot: a driver's answer, which is all there is of it, as text. */
void part_open_answer(Part *p, const char *fifos, const Interpreter interpreters[INTERPRETERS_MAX], unsigned k,
                      int talk);
/* Of the current directory, in a process of its own, in which channel is closed. */
void part_open_archive(Part *p, bool saving, int channel);

/* Called with what comes from the part; an error, which ends everything, is the channel's. */
typedef int (*PartSink)(const char *data, size_t size, void *userdata);
/* Saving: all of the part, until its report is there. */
int part_drain(Part *p, PartSink sink, void *userdata);
/* Restoring: hands bytes on. What the part does not want any more is dropped. */
void part_feed(Part *p, const char *data, size_t size);
/* Restoring: there are no more bytes. Waits for the report, or answer. */
void part_finish(Part *p);

/* Adds the report to the result, and frees all but the two. Whether text is a report. */
bool part_settle(Part *p);
void part_done(Part *p);
