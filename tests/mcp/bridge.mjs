// SPDX-License-Identifier: MIT
// A transparent bridge from Streamable HTTP to MCP servers on stdio, for the conformance suite, which speaks HTTP only.
//
//   bridge.mjs [--alias FILE] -- COMMAND [ARGS...]
//
// Prints the port it listens on. Bodies pass unchanged but for ids and progress tokens, which are renumbered so that
// many HTTP requests can share one child: the child itself answers every check. A handshake session (initialize) has
// a child of its own, named by Mcp-Session-Id; requests of the stateless revision share one. What belongs to HTTP,
// headers and status codes, is the bridge's.
//
// The alias file maps names of the suite's fixture tools to calls of ours: {"NAME": {"name": "run", "arguments": {}}}.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const META = 'io.modelcontextprotocol/';
const SUBSCRIPTION = `${META}subscriptionId`;
const LOCAL = /^(https?:\/\/)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
const BAD_REQUEST = [-32600, -32602, -32700, -32020, -32021, -32022];
const NOT_FOUND = -32601;
const HEADER_MISMATCH = -32020;

const separator = process.argv.indexOf('--');
const [command, ...commandArguments] = process.argv.slice(separator + 1);
const aliasFile = process.argv[process.argv.indexOf('--alias') + 1];
const aliases = process.argv.includes('--alias') ? JSON.parse(readFileSync(aliasFile, 'utf8')) : {};

function sendJson(response, status, body, headers = {}) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
}

function sendError(response, status, id, code, message) {
    sendJson(response, status, { jsonrpc: '2.0', id: id ?? null, error: { code, message } });
}

/** One HTTP response: plain JSON, or an event stream once something has to be said before the result. */
class Exchange {
    constructor(response, request, stateless, headers = {}) {
        Object.assign(this, { response, stateless, headers, started: false });
        this.id = request?.id;
        this.method = request?.method;
    }

    event(message) {
        if (!this.started) {
            this.started = true;
            this.response.writeHead(200, { 'content-type': 'text/event-stream', ...this.headers });
        }
        this.response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    }

    open() {
        this.started = true;
        this.response.writeHead(200, { 'content-type': 'text/event-stream', ...this.headers });
        this.response.flushHeaders();
    }

    status(message) {
        if (!this.stateless || !message.error)
            return 200;
        if (message.error.code === NOT_FOUND)
            return 404;
        return BAD_REQUEST.includes(message.error.code) ? 400 : 200;
    }

    finish(message) {
        if (this.started) {
            this.event(message);
            this.response.end();
        } else
            sendJson(this.response, this.status(message), message, this.headers);
    }

    fail() {
        if (this.started)
            this.response.end();
        else
            sendError(this.response, 502, this.id, -32603, 'the server has ended');
    }
}

/** One server process, and the exchanges that wait for it. */
class Child {
    constructor() {
        this.process = spawn(command, commandArguments, { stdio: ['pipe', 'pipe', 'inherit'] });
        this.waiting = new Map(); // our id → Exchange
        this.tokens = new Map(); // our progress token → Exchange
        this.streams = new Set(); // GET streams
        this.lastId = 0;
        let rest = '';
        this.process.stdout.setEncoding('utf8').on('data', (data) => {
            const lines = (rest + data).split('\n');
            rest = lines.pop();
            lines.filter((line) => line.trim()).forEach((line) => this.receive(JSON.parse(line)));
        });
        this.process.stdin.on('error', () => {});
        this.process.on('exit', () => {
            this.dead = true;
            this.waiting.forEach((exchange) => exchange.fail());
        });
    }

    write(message) {
        this.process.stdin.write(`${JSON.stringify(message)}\n`);
    }

    end() {
        this.process.stdin.end();
    }

    send(message, exchange) {
        const id = ++this.lastId;
        this.waiting.set(id, exchange);
        const alias = message.method === 'tools/call' && aliases[message.params?.name];
        const params = alias ? { ...message.params, ...alias } : message.params;
        const token = params?._meta?.progressToken;
        if (token !== undefined) {
            exchange.token = token;
            this.tokens.set(`token-${id}`, exchange);
            params._meta.progressToken = `token-${id}`;
        }
        exchange.response.on('close', () => {
            if (this.waiting.delete(id))
                this.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } });
        });
        this.write({ ...message, id, ...(params ? { params } : {}) });
    }

    notify(message) {
        if (message.method === 'notifications/cancelled')
            for (const [id, exchange] of this.waiting)
                if (exchange.id === message.params?.requestId)
                    message.params.requestId = id;
        this.write(message);
    }

    receive(message) {
        if (message.method === undefined)
            this.answer(message);
        else
            this.forward(message);
    }

    answer(message) {
        const exchange = this.waiting.get(message.id);
        if (!exchange)
            return;
        this.waiting.delete(message.id);
        message.id = exchange.id;
        if (exchange.method === 'tools/list' && message.result?.tools)
            for (const [name, alias] of Object.entries(aliases)) {
                const tool = message.result.tools.find((candidate) => candidate.name === alias.name);
                message.result.tools.push({ ...tool, name });
            }
        exchange.finish(message);
    }

    forward(message) {
        const meta = message.params?._meta;
        const progress = this.tokens.get(message.params?.progressToken);
        const subscriber = this.waiting.get(meta?.[SUBSCRIPTION]);
        if (progress) {
            message.params.progressToken = progress.token;
            progress.event(message);
        } else if (subscriber) {
            meta[SUBSCRIPTION] = subscriber.id;
            subscriber.event(message);
        } else
            this.streams.forEach((stream) => stream.event(message));
    }
}

const sessions = new Map();
let shared = null;

/** The header layer of the stateless revision; a complaint, or null. */
function checkHeaders(message, headers, version) {
    if (version !== undefined && headers['mcp-protocol-version'] !== version)
        return 'MCP-Protocol-Version header does not match _meta';
    if (headers['mcp-method'] !== message.method)
        return 'Mcp-Method header missing or mismatched';
    if (message.method === 'tools/call' && headers['mcp-name'] !== message.params?.name)
        return 'Mcp-Name header missing or mismatched';
    return null;
}

/** The child that a request is for, with headers for its response; or null after an error was sent. */
function route(message, request, response, stateless) {
    const sessionId = request.headers['mcp-session-id'];
    if (stateless) {
        if (!shared || shared.dead)
            shared = new Child();
        return { child: shared, headers: {} };
    }
    if (message.method === 'initialize') {
        const id = randomUUID();
        sessions.set(id, new Child());
        return { child: sessions.get(id), headers: { 'mcp-session-id': id } };
    }
    if (sessions.has(sessionId))
        return { child: sessions.get(sessionId), headers: {} };
    sendError(response, sessionId ? 404 : 400, message.id, -32600, 'no such session');
    return null;
}

function post(message, request, response) {
    const version = message.params?._meta?.[`${META}protocolVersion`];
    const stateless = version !== undefined || request.headers['mcp-protocol-version'] >= '2026';
    const complaint = stateless && checkHeaders(message, request.headers, version);
    if (complaint) {
        sendError(response, 400, message.id, HEADER_MISMATCH, complaint);
        return;
    }
    const target = route(message, request, response, stateless);
    if (!target)
        return;
    if (message.method === undefined || message.id === undefined) {
        target.child.notify(message);
        response.writeHead(202).end();
        return;
    }
    target.child.send(message, new Exchange(response, message, stateless, target.headers));
}

function serve(request, response) {
    const { origin, host } = request.headers;
    const session = sessions.get(request.headers['mcp-session-id']);
    if ((origin && !LOCAL.test(origin)) || (host && !LOCAL.test(host)))
        sendError(response, 403, null, -32600, 'foreign origin or host');
    else if (request.method === 'DELETE' && session) {
        session.end();
        sessions.delete(request.headers['mcp-session-id']);
        response.writeHead(200).end();
    } else if (request.method === 'GET' && session) {
        const stream = new Exchange(response);
        stream.open();
        session.streams.add(stream);
        request.on('close', () => session.streams.delete(stream));
    } else if (request.method !== 'POST')
        response.writeHead(session ? 405 : 404, { allow: 'POST' }).end();
    else {
        let body = '';
        request.setEncoding('utf8').on('data', (data) => (body += data)).on('end', () => {
            try {
                post(JSON.parse(body), request, response);
            } catch {
                sendError(response, 400, null, -32700, 'Parse error');
            }
        });
    }
}

const server = createServer(serve).listen(0, '127.0.0.1', () => console.log(server.address().port));
process.on('SIGTERM', () => {
    [...sessions.values(), shared].forEach((child) => child?.end());
    setTimeout(() => process.exit(0), 200);
});
