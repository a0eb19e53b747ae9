/* SPDX-License-Identifier: MIT */
/*
 * With a network, has fetch, http and https of a node that knows no proxies go through the one of the environment:
 * https by CONNECT, http by naming the whole URL. This file is a function, called first of
 * all. The environment is read anew for each request, so that code may change it.
 *
 * Only defaults are changed, as newer nodes do: the dispatcher of fetch and the two global agents. Code that brings
 * an agent of its own means it. Nothing is loaded before it is used, which would cost every start half as much again:
 * fetch loads undici when it is called; http is noticed when it is required or, for import, by its first act, which
 * is to read net.createConnection.
 *
 * A refused CONNECT is an error with the proxy's own words, the cause of fetch's. A refused http request is a
 * response, whose body has them.
 */
() => {
        'use strict';

        const { Buffer, Error, Number, Object, process, queueMicrotask, String, Symbol, URL } = globalThis;
        const { env } = process;
        const [major, minor] = process.versions.node.split('.').map(Number);

        /* NODE_USE_ENV_PROXY, which the agent sets, is all that these need. */
        if (!env.http_proxy || major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21))
                return;

        const { apply } = Reflect;
        const { Module } = require('module');
        const net = require('net');

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
                const { statusCode, statusMessage } = response;
                const sentence = text.trim() || `The proxy refused ${authority}: ${statusCode} ${statusMessage}`;

                return Object.assign(new Error(sentence), { code: 'ERR_PROXY_REFUSED', statusCode });
        };

        /* Its body follows, for which nobody waits for long. */
        const readRefusal = (response, socket, head, done) => {
                const length = Math.min(Number(response.headers['content-length'] ?? SENTENCE_MAX), SENTENCE_MAX);
                let body = head;

                const finish = () => {
                        done?.(body.toString('utf8', 0, length));
                        done = null;
                        socket.destroy();
                };
                const take = (more) => {
                        body = Buffer.concat([body, more]);
                        if (body.length >= length)
                                finish();
                };

                socket.setTimeout(SENTENCE_MSEC, finish);
                socket.on('data', take).on('end', finish).on('error', finish).on('close', finish);
                take(Buffer.alloc(0));
        };

        /* done(error) or done(null, socket) */
        const tunnel = (proxy, host, port, done) => {
                if (proxy === null)
                        return done(new Error('The environment names no proxy any more'));
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
                                const { host = 'localhost', port = 80, socketPath } = options;
                                const proxy = socketPath ? null : proxyFor('http:', host, port);

                                if (proxy === null)
                                        return super.addRequest(request, options, ...rest);
                                const from = request.path;
                                const at = request.getHeader('host') ??
                                        `${bracketed(bare(host))}${Number(port) === 80 ? '' : `:${port}`}`;

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
                                const { host = 'localhost', port = 443, socketPath } = options;
                                const proxy = socketPath ? null : proxyFor('https:', host, port);

                                if (proxy === null)
                                        return super.createConnection(options, done);
                                tunnel(proxy, host, port, (error, socket) => error
                                        ? done(error) : done(null, super.createConnection({ ...options, socket })));
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
                if (installed)
                        return installed;
                Object.defineProperty(net, 'createConnection', { value: createConnection, writable: true });
                if (Module._load === hookedLoad)
                        Module._load = load;
                return installed = makeAgents(require('http'), require('https'));
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

        const { fetch } = globalThis;
        const DISPATCHER = Symbol.for('undici.globalDispatcher.1');

        const connect = ({ hostname, port, protocol, servername }, done) => {
                const onSocket = (socket, event) => {
                        socket.setNoDelay(true);
                        socket.once('error', done);
                        socket.once(event, () => done(null, socket.off('error', done)));
                };

                /* What is asked for by http is the proxy itself. */
                if (protocol === 'http:')
                        return onSocket(net.connect(Number(port || 80), bare(hostname)), 'connect');
                tunnel(proxyFor(protocol, hostname, port || 443), hostname, port || 443, (error, socket) => {
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
                                        headers: { ...options.headers, host },
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
