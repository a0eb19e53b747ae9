/* SPDX-License-Identifier: MIT */

/* The table of verbs. */

#include "ctl/verbs.h"


const Verb verbs[] = {
        { "run", "[-e ENV] [-i INTERPRETER] [-s SESSION] [--timeout S] [--memory MB] [--cpus N] (CODE | -)",
          "run code, in a session or in a sandbox of its own", verb_run },
        { "list", "[-a]", "your sessions, or everyone's", verb_list },
        { "top", "[-ab] [-d SECONDS] [-n N]", "the sessions as they change; h shows its keys", verb_top },
        { "show", "SESSION", "all about one session", verb_show },
        { "kill", "[-y] (SESSION... | [-a] --all | --user USER [SESSION...])",
          "end sessions and everything in them", verb_kill },
        { "freeze", "[-y] (SESSION... | ...)", "stop sessions until they are thawed", verb_freeze },
        { "thaw", "[-y] (SESSION... | ...)", "let them go on", verb_thaw },
        { "interrupt", "[-y] (SESSION... | ...)", "stop the turn that runs, keep the state", verb_interrupt },
        { "history", "SESSION", "the turns of a session", verb_history },
        { "events", "[-f]", "what happened, and with -f what happens", verb_events },
        { "audit", "[-n LINES] [-f FILE|DIR] [verify [--expect SEQ:HASH]]",
          "the last lines of the audit trail, or whether all of it is as it was written", verb_audit },
        { "envs", "", "environments that sessions can be made from", verb_envs },
        { "doctor", "", "what this machine offers, what is missing, and how to mend it", verb_doctor },
        { "bridge", "", NULL, verb_bridge },
        {},
};
