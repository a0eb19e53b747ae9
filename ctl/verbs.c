/* SPDX-License-Identifier: MIT */

/* The table of verbs. */

#include "ctl/verbs.h"

const Verb verbs[] = {
        { "run",
          "[-e ENV] [-i INTERPRETER] [-s SESSION] [--timeout S] [--memory MB] [--cpus N] [--network RULES] "
          "[--pictures DIR] (CODE | -)",
          "run code, in a session or in a sandbox of its own", verb_run },
        { "list", "[-a]", "your sessions, or everyone's", verb_list },
        { "top", "[-ab] [-d SECONDS] [-n N]", "the sessions as they change; h shows its keys", verb_top },
        { "show", "[-a] SESSION", "all about one session", verb_show },
        { "stats", "[-a] [SESSION...]", "what sessions have used of what they may", verb_stats },
        { "set", "[-ax] SESSION [LIMIT=VALUE...] [--allow RULES]",
          "change memory, cpus, processes, cpu-weight, io-read, io-write of a session, or let it reach more hosts",
          verb_set },
        { "kill", "[-y] (SESSION... | [-a] --all | --user USER [SESSION...])",
          "end sessions and everything in them", verb_kill },
        { "freeze", "[-y] (SESSION... | ...)", "stop sessions until they are thawed", verb_freeze },
        { "thaw", "[-y] (SESSION... | ...)", "let them go on", verb_thaw },
        { "interrupt", "[-y] (SESSION... | ...)", "stop the turn that runs, keep the state", verb_interrupt },
        { "history", "[-a] [--replay NEW] SESSION", "the turns of a session, or the same again in a new one",
          verb_history },
        { "vars", "[-i INTERPRETER] SESSION [NAME]", "the variables of a session, or all of one", verb_vars },
        { "rollback", "SESSION [STEPS]", "take python back to its state some checkpoints ago", verb_rollback },
        { "get", "SESSION FILE [LOCAL | -]", "copy a file out of a session", verb_get },
        { "put", "SESSION (LOCAL | -) FILE", "copy a file into a session", verb_put },
        { "save", "[-a] SESSION", "keep the state of a session on the disk now", verb_save },
        { "snapshots", "[-a] [SESSION]", "what is kept of sessions", verb_snapshots },
        { "restore", "SESSION [NEWNAME] [--snapshot ID] [--project-mode MODE]",
          "a new session with the state that was kept of one",
          verb_restore },
        { "events", "[-af]", "what happened, and with -f what happens", verb_events },
        { "audit", "[-n LINES] [-f FILE|DIR] [verify [--expect SEQ:HASH]]",
          "the last lines of the audit trail, or whether all of it is as it was written", verb_audit,
          .is_local = true },
        { "envs", "", "environments that sessions can be made from", verb_envs },
        { "doctor", "", "what this machine offers, what is missing, and how to mend it", verb_doctor },
        { "reload", "", "take up a changed configuration or a new version; sessions stay", verb_reload },
        { "bridge", "", NULL, verb_bridge, .is_local = true },
        {},
};
