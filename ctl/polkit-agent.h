/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lets polkit ask on a terminal where no desktop does: pkttyagent(1) as a child, as systemctl has it. Only for
 * calls that say "interactive". There is one terminal, hence no object.
 */

/* Starts it once, and returns when it is registered. Nothing where there is none, or for root, whom nobody asks. */
void polkit_agent_start(void);
/* Also at exit: it must not outlive the program on the terminal. */
void polkit_agent_end(void);
