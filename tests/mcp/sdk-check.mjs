// SPDX-License-Identifier: MIT
// Checks the shim with an official MCP client.
//
//   sdk-check.mjs MODULES SDK ERA COMMAND [ARGS...]
//
// MODULES is a directory with node_modules; SDK is v1 (@modelcontextprotocol/sdk) or v2 (…/client); ERA is
// legacy, auto or modern (v2 only). Prints "ok NAME" or "FAIL NAME: why" for each check; exit status 1 if one
// failed. The shim must reach a real sandboxd.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { pathToFileURL } from 'node:url';

const MODERN = '2026-07-28';
const [modules, sdk, era, ...command] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);

function load(name) {
    return import(pathToFileURL(require.resolve(name)).href);
}

async function loadSdk() {
    if (sdk === 'v1') {
        const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
        const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
        return { Client, StdioClientTransport, options: {} };
    }
    const { Client } = await load('@modelcontextprotocol/client');
    const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
    const mode = era === 'modern' ? { pin: MODERN } : era;
    return { Client, StdioClientTransport, options: { versionNegotiation: { mode } } };
}

const { Client, StdioClientTransport, options } = await loadSdk();
const complaints = [];

async function connect() {
    const transport = new StdioClientTransport({ command: command[0], args: command.slice(1), env: process.env });
    const client = new Client({ name: 'sdk-check', version: '1' }, { capabilities: {}, ...options });
    client.onerror = (error) => complaints.push(String(error.message ?? error));
    await client.connect(transport, { timeout: 15000 });
    return { client, transport };
}

const { client, transport } = await connect();
const session = `sdk-${process.pid}`;

/** A tool's result, or the error that the SDK threw, with the time it took. */
async function call(name, args, requestOptions = {}) {
    const start = performance.now();
    const params = { name, arguments: args };
    const all = { timeout: 60000, ...requestOptions };
    try {
        const result = await (sdk === 'v1' ? client.callTool(params, undefined, all) : client.callTool(params, all));
        return { result, text: result.content.map((block) => block.text).join(''), ms: performance.now() - start };
    } catch (error) {
        return { error, ms: performance.now() - start };
    }
}

function run(code, more = {}, requestOptions = {}) {
    return call('run', { code, env: 'shell', ...more }, requestOptions);
}

const checks = {
    async 'version and instructions'() {
        assert.equal(client.getServerVersion()?.name, 'nix-sandbox');
        assert.match(client.getInstructions(), /python, shell, node/);
        assert.deepEqual(client.getServerCapabilities(), { tools: {} });
    },

    async 'tools are listed, twice the same'() {
        const [first, second] = [await client.listTools(), await client.listTools()];
        assert.deepEqual(first.tools.map((tool) => tool.name), ['run', 'session']);
        assert.deepEqual(first.tools, second.tools);
    },

    async 'a call'() {
        const { result, text } = await run('echo out; echo err >&2');
        assert.ok(!result.isError);
        assert.match(text, /^out\n--- stderr ---\nerr\n\[exit 0 · no session · .* m?s\]$/);
    },

    async 'failing code'() {
        const { result, text } = await run('echo partial; exit 3');
        assert.equal(result.isError, true);
        assert.match(text, /^partial\n[^]*\[exit 3 /);
    },

    async 'state is kept by session name'() {
        await run('x=41', { session });
        const { text } = await run('echo $((x + 1))', { session });
        assert.match(text, /^42\n/);
        assert.match((await call('session', { action: 'history', session })).text, /x=41/);
    },

    async 'python and node'() {
        assert.match((await call('run', { code: '"sn" + "ow"', env: 'python' })).text, /snow/);
        assert.match((await call('run', { code: 'console.log(6 * 7)', env: 'node' })).text, /^42\n/);
    },

    async 'text survives'() {
        const strange = 'héllo ☃ 😀 \u2028 \\n "q" \t';
        const { text } = await run(`cat <<'END'\n${strange}\nEND\nprintf '\\033[31m\\0\\377'`);
        assert.ok(text.startsWith(`${strange}\n\u001b[31m\0\ufffd`), JSON.stringify(text));
    },

    async 'bad arguments are results'() {
        for (const args of [{}, { code: 5 }, { code: 'x', env: 'no-such' }, { code: 'x', session: '../x' }]) {
            const { result, error } = await call('run', args);
            assert.equal(result?.isError, true, `${JSON.stringify(args)}: ${error}`);
        }
    },

    async 'an unknown tool is a protocol error'() {
        const { error } = await call('no_such_tool', {});
        assert.equal(error?.code, -32602);
    },

    async 'eight calls at once'() {
        const all = await Promise.all(Array.from({ length: 8 }, (_, n) => run(`sleep 0.3; echo n${n}`)));
        all.forEach(({ text }, n) => assert.match(text, new RegExp(`^n${n}\\n`)));
    },

    async 'progress'() {
        const seen = [];
        const { text } = await run('sleep 4; echo done', {}, { onprogress: (progress) => seen.push(progress) });
        assert.match(text, /^done\n/);
        assert.ok(seen.length >= 2, `${seen.length} notifications`);
        assert.ok(seen.every((p, i) => p.message && (i === 0 || p.progress > seen[i - 1].progress)));
    },

    async 'cancelling keeps the state'() {
        await run('y=5', { session });
        const { error, ms } = await run('sleep 20', { session }, { signal: AbortSignal.timeout(500) });
        assert.ok(error && ms < 2000, `${error} after ${ms} ms`);
        assert.match((await run('echo y=$y', { session })).text, /^y=5\n/);
    },

    async 'a time-out of the client'() {
        const { error, ms } = await run('sleep 20', { session }, { timeout: 500 });
        assert.ok(error && ms < 2000, `${error} after ${ms} ms`);
        assert.match((await run('echo y=$y', { session })).text, /^y=5\n/);
    },

    async 'a time-out of the turn'() {
        const { result, text } = await run('echo early; sleep 20', { session, timeout: 0.5 });
        assert.equal(result.isError, true);
        assert.match(text, /^early\n[^]*\[exit 124 · timed out · /);
    },

    async 'ping'() {
        if (client.getNegotiatedProtocolVersion?.() !== MODERN)
            await client.ping({ timeout: 5000 });
    },

    async 'ending the session'() {
        assert.match((await call('session', { action: 'list' })).text, new RegExp(session));
        assert.match((await call('session', { action: 'kill', session })).text, /has ended/);
    },

    async 'closing in the middle of a turn is quick'() {
        const { pid } = transport;
        void run('sleep 20');
        await new Promise((resolve) => setTimeout(resolve, 300));
        const start = performance.now();
        await client.close();
        assert.ok(performance.now() - start < 1000, `${performance.now() - start} ms`);
        assert.throws(() => process.kill(pid, 0), 'it is still alive');
    },

    async 'the client had nothing to complain about'() {
        assert.deepEqual(complaints, []);
    },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
    try {
        await check();
        console.log(`ok ${name}`);
    } catch (error) {
        failed += 1;
        console.log(`FAIL ${name}: ${error.message.replaceAll('\n', ' ').slice(0, 600)}`);
    }
}
process.exit(failed ? 1 : 0);
