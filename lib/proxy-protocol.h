/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What sandboxd and sandbox-proxy say to each other, in frames (frame.h) over a socketpair, PROXY_CONTROL_FD of the
 * proxy. The turn id of a frame is the session's number: any but 0, chosen by the daemon, never used again with
 * the same process. The proxy trusts the daemon, but a frame that is none ends it. The daemon trusts nothing of what
 * the proxy says: it runs as the user.
 *
 *   daemon → proxy
 *     ADD      {"policy":{"environment":[rule…], "caller":[rule…]|null, "granted":[rule…]},  network-rule.h's texts
 *               "limits":{…},            network-limits.h
 *               "used":{…},              network-usage.h: what counts against the limits from before, as of a proxy
 *                                        that has died; may be left out
 *               "credentials":[{"host":string, "port":u, "name":string, "value":string}…]}   may be left out: a header
 *                                        field for plain HTTP requests to that host and port
 *              With its first byte comes the session's listening socket (SCM_RIGHTS): AF_UNIX, stream, non-blocking;
 *              each connection to it brings one of the jail's, as a TCP socket with a byte (SCM_RIGHTS).
 *     CHANGE   the same JSON, without "used" and without a socket: from now on. What is open and would not be allowed
 *              any more is cut.
 *     REMOVE   no payload. Its connections are cut, its socket closed; REMOVED answers.
 *
 *   proxy → daemon
 *     READY    turn 0: {"version":"…"}, the first frame
 *     REFUSED  {"host":string, "port":u, "address":string|null, "verdict":string, "count":u}
 *              verdict: of network-policy.h. address: what the name leads to, where that was the reason. count: how
 *              often since it was last told; at most PROXY_REFUSALS_PER_SECOND of these frames a session and second,
 *              for PROXY_REFUSALS_KEPT hosts; "host" is in canonical form, or a quoted and cut text where it is none.
 *     USAGE    {…} of network-usage.h, at most once a second while it changes
 *     REMOVED  {…} the same, for the last time
 *
 * The proxy ends when the daemon closes its end.
 */

#define PROXY_CONTROL_FD 3
#define PROXY_PAYLOAD_MAX (1024 * 1024)         /* to the proxy */
#define PROXY_REPORT_MAX 4096                   /* from it */
#define PROXY_SESSIONS_MAX 1024
#define PROXY_REFUSALS_PER_SECOND 20
#define PROXY_REFUSALS_KEPT 64

typedef enum ProxyFrame {
        PROXY_FRAME_ADD = 1,
        PROXY_FRAME_CHANGE = 2,
        PROXY_FRAME_REMOVE = 3,
        PROXY_FRAME_READY = 16,
        PROXY_FRAME_REFUSED = 17,
        PROXY_FRAME_USAGE = 18,
        PROXY_FRAME_REMOVED = 19,
} ProxyFrame;
