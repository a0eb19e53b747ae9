/* SPDX-License-Identifier: MIT */
/*
 * For a node that does not look at http_proxy and its like by itself (before 22.21 and 24.5): has fetch, http and https
 * go through that proxy, https by CONNECT, http by naming the whole URL. This file is a function, called once when a
 * session has a network. The environment is read anew for each request, so that code may change it.
 *
 * Only defaults are changed, as in the newer node: the dispatcher of fetch and the two global agents. Code that brings
 * an agent of its own means it. None of the three modules is loaded here, which would cost every start as much as it
 * takes already: fetch loads undici when it is called; http is noticed when it is required or, for import, by its
 * first act, which is to read net.createConnection.
 *
 * A refused CONNECT is an error with the proxy's own words, the cause of fetch's. A refused http request is a
 * response, whose body has them.
 */
() => {
        'use strict';

        const { Buffer, Error, Number, Object, process, queueMicrotask, String, Symbol, URL } = globalThis;
        const { apply } = Reflect;
        const { Module } = require('module');
        const net = require('net');

        const { env } = process;
        const SENTENCE_MAX = 4096, SENTENCE_MSEC = 2000;

        /* ---- which way ---- */

        const lookUp = (name) => env[name] || env[name.toUpperCase()] || '';
        const bare = (host) => host.replace(/^\[|\]$/g, '').toLowerCase();
        const bracketed = (host) => net.isIPv6(host) ? `[${host}]` : host;

        /* An entry is a host, which stands for those below it, too, perhaps with a port; or all. */
        const isDirect = (host, port) => lookUp('no_proxy').toLowerCase().split(/[\s,]+/).some((entry) => {
                const [name, only] = net.isIPv6(bare(entry)) ? [entry] : entry.split(/:(?=\d+$)/);
                const wanted = bare(name).replace(/^\*?\./, '');

                return entry === '*' || (wanted !== '' && (only === undefined || only === String(port)) &&
                                         (host === wanted || (net.isIP(host) === 0 && host.endsWith(`.${wanted}`))));
        });

        /* The proxy for a request, { host, port }, or null. */
        const proxyFor = (protocol, name, port) => {
                const host = bare(name), text = lookUp(`${protocol.slice(0, -1)}_proxy`);

                if (text === '' || isDirect(host, port))
                        return null;
                const proxy = new URL(text.includes('://') ? text : `http://${text}`);

                return { host: bare(proxy.hostname), port: Number(proxy.port || 80) };
        };

        /* ---- CONNECT ---- */

        const refusal = (authority, response, text) => {
                const sentence = text.trim() || `${response.statusCode} ${response.statusMessage}`;

                return Object.assign(new Error(`The proxy refused ${authority}: ${sentence}`),
                                     { code: 'ERR_PROXY_REFUSED', statusCode: response.statusCode });
        };

        /* Its body follows, for which nobody waits for long. */
        const readRefusal = (response, socket, head, done) => {
                const length = Number(response.headers['content-length'] ?? SENTENCE_MAX);
                let body = head, over = false;

                const finish = () => {
                        if (over)
                                return;
                        over = true;
                        socket.destroy();
                        done(body.toString('utf8', 0, Math.min(length, SENTENCE_MAX)));
                };
                const look = () => body.length >= Math.min(length, SENTENCE_MAX) && finish();

                socket.setTimeout(SENTENCE_MSEC, finish);
                for (const event of ['end', 'error', 'close'])
                        socket.on(event, finish);
                socket.on('data', (more) => {
                        body = Buffer.concat([body, more]);
                        look();
                });
                look();
        };

        /* done(error) or done(null, socket) */
        const tunnel = (proxy, host, port, done) => {
                const { http, DirectAgent } = install();
                const authority = `${bracketed(bare(host))}:${port}`;
                const request = http.request({ method: 'CONNECT', host: proxy.host, port: proxy.port, path: authority,
                                               headers: { host: authority }, agent: new DirectAgent() });

                request.on('connect', (response, socket, head) => {
                        if (response.statusCode === 200) {
                                if (head.length > 0)
                                        socket.unshift(head);
                                return done(null, socket);
                        }
                        readRefusal(response, socket, head, (text) => done(refusal(authority, response, text)));
                });
                request.on('error', done);
                request.end();
        };

        /* ---- http and https ---- */

        const renamed = (header, from, to) => header?.replace(` ${from} HTTP/`, () => ` ${to} HTTP/`);

        const makeAgents = (http, https) => {
                const DirectAgent = http.Agent;
                const OPTIONS = { keepAlive: true, scheduling: 'lifo', timeout: 5000 };    /* those of node's own */

                class HttpAgent extends DirectAgent {
                        addRequest(request, options, ...rest) {
                                const { host, port } = options, proxy = proxyFor('http:', host ?? 'localhost', port ?? 80);

                                if (proxy === null || options.socketPath)
                                        return super.addRequest(request, options, ...rest);
                                const from = request.path;
                                const at = request.getHeader('host') ??
                                        `${bracketed(bare(host))}${Number(port ?? 80) === 80 ? '' : `:${port}`}`;

                                /* The header is there already when it was given as a list, or the body waits. */
                                request.path = `http://${at}${from}`;
                                request._header = renamed(request._header, from, request.path) ?? null;
                                for (const piece of request.outputData ?? [])
                                        if (typeof piece.data === 'string')
                                                piece.data = renamed(piece.data, from, request.path);
                                return super.addRequest(request, { ...options, host: proxy.host, port: proxy.port },
                                                        ...rest);
                        }
                }

                class HttpsAgent extends https.Agent {
                        createConnection(options, done) {
                                const { host, port } = options;
                                const proxy = options.socketPath ? null : proxyFor('https:', host ?? 'localhost', port ?? 443);

                                if (proxy === null)
                                        return super.createConnection(options, done);
                                tunnel(proxy, host, port ?? 443, (error, socket) => {
                                        if (error)
                                                return done(error);
                                        done(null, super.createConnection({ ...options, socket }));
                                });
                        }
                }

                http.globalAgent = new HttpAgent(OPTIONS);
                https.globalAgent = new HttpsAgent(OPTIONS);
                return { http, DirectAgent };
        };

        let installed = null;
        const { createConnection } = net;
        const load = Module._load;

        const install = () => {
                if (installed !== null)
                        return installed;
                Object.defineProperty(net, 'createConnection', { value: createConnection, writable: true });
                if (Module._load === hookedLoad)
                        Module._load = load;
                installed = makeAgents(require('http'), require('https'));
                return installed;
        };

        const hookedLoad = function (request, ...rest) {
                const loaded = apply(load, this, [request, ...rest]);

                if (/^(node:)?https?$/.test(request))
                        install();
                return loaded;
        };

        Module._load = hookedLoad;
        Object.defineProperty(net, 'createConnection', {
                configurable: true,
                enumerable: true,
                get: () => {
                        queueMicrotask(install);
                        return createConnection;
                },
                set: (value) => Object.defineProperty(net, 'createConnection', { value, writable: true }),
        });

        /* ---- fetch ---- */

        const DISPATCHER = Symbol.for('undici.globalDispatcher.1');
        const { fetch } = globalThis;

        const connect = ({ hostname, port, protocol, servername }, done) => {
                const proxy = proxyFor(protocol, hostname, port || (protocol === 'https:' ? 443 : 80));
                const onSocket = (socket, event) => {
                        socket.setNoDelay(true);
                        socket.once('error', done);
                        socket.once(event, () => {
                                socket.off('error', done);
                                done(null, socket);
                        });
                };

                /* What is asked for by http is the proxy itself. */
                if (protocol === 'http:' || proxy === null)
                        return onSocket(net.connect(Number(port), bare(hostname)), 'connect');
                tunnel(proxy, hostname, port || 443, (error, socket) => {
                        if (error)
                                return done(error);
                        const host = bare(servername || hostname);

                        onSocket(require('tls').connect({ socket, host, servername: net.isIP(host) ? '' : host,
                                                          ALPNProtocols: ['http/1.1'] }), 'secureConnect');
                });
        };

        /* Whatever else there is instead of node's own knows about proxies, or is meant not to. */
        const replaceDispatcher = () => {
                const direct = globalThis[DISPATCHER];

                if (direct?.constructor?.name !== 'Agent')
                        return;
                globalThis[DISPATCHER] = new class ProxyAgent extends direct.constructor {
                        dispatch(options, handler) {
                                const { protocol, hostname, port, host, origin } = new URL(options.origin);
                                const proxy = proxyFor(protocol, hostname, port || (protocol === 'https:' ? 443 : 80));

                                if (proxy === null)
                                        return direct.dispatch(options, handler);
                                if (protocol === 'https:')
                                        return super.dispatch(options, handler);
                                return super.dispatch({
                                        ...options,
                                        origin: `http://${bracketed(proxy.host)}:${proxy.port}`,
                                        path: `${origin}${options.path}`,
                                        headers: [...Object.entries(options.headers ?? {}).flat(), 'host', host],
                                }, handler);
                        }
                }({ connect });
        };

        const proxiedFetch = { fetch(input, init = undefined) {
                if (globalThis.fetch === proxiedFetch)
                        globalThis.fetch = fetch;
                fetch('data:,').catch(() => {});                /* loads undici, and so its dispatcher */
                replaceDispatcher();
                return fetch(input, init);
        } }.fetch;

        if (fetch)
                Object.defineProperty(globalThis, 'fetch', { value: proxiedFetch });
}
