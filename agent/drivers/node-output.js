/* SPDX-License-Identifier: MIT */
/*
 * What the node driver and its turns print. This file is a function: called once, it puts our streams in the
 * place of process.stdout and process.stderr, and gives what node.js needs of them.
 *
 * They are node's own streams, made when they are first needed. Writes to them block: that keeps our output
 * and our children's in order, and bounds what waits in memory.
 */
() => {
        'use strict';

        const { process } = globalThis;
        const { apply } = Reflect;
        const { EventEmitter } = require('events');
        const { writeSync } = require('fs');
        const { Writable } = require('stream');
        const { inspect } = require('util');

        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const eventEmit = unbound(EventEmitter.prototype.emit);
        const regexpExec = unbound(RegExp.prototype.exec);
        const stringRepeat = unbound(String.prototype.repeat);
        const stringSlice = unbound(String.prototype.slice);
        const stringSplit = unbound(String.prototype.split);
        const streamUncork = unbound(Writable.prototype.uncork);
        const streamWrite = unbound(Writable.prototype.write);

        const SHOWN_MAX = 200000;
        const SHOWN_LINE_MAX = 200;
        const SHOW_OPTIONS = {
                __proto__: null,
                maxArrayLength: 1000,
                maxStringLength: 100000,
                showProxy: true,                /* or its traps would run */
        };

        const streams = { __proto__: null, stdout: null, stderr: null };
        const getters = {
                __proto__: null,
                stdout: Object.getOwnPropertyDescriptor(process, 'stdout').get,
                stderr: Object.getOwnPropertyDescriptor(process, 'stderr').get,
        };

        const streamBlock = (stream) => stream?._handle?.setBlocking?.(true);

        /* Ends nothing: what a pipeline wrote is complete, but console keeps the stream for later turns. */
        const streamEnd = (stream, chunk, encoding, done) => {
                const isCallback = (argument) => typeof argument === 'function';
                const callback = isCallback(chunk) ? chunk : isCallback(encoding) ? encoding : done;

                if (chunk !== callback && chunk !== undefined && chunk !== null)
                        streamWrite(stream, chunk, encoding === callback ? undefined : encoding);
                streamWrite(stream, '', () => {
                        eventEmit(stream, 'finish');
                        callback?.();
                });
                return stream;
        };

        const streamGet = (name) => {
                if (streams[name] === null) {
                        const stream = streams[name] = apply(getters[name], process, []);

                        stream.end = (chunk, encoding, done) => streamEnd(stream, chunk, encoding, done);
                        streamBlock(stream);
                }
                return streams[name];
        };

        /* There is something to wait for if code has corked it, or a child made the pipe non-blocking. */
        const streamDrain = (stream, done) => {
                while (stream?.writableCorked > 0)
                        streamUncork(stream);
                if (!(stream?.writableLength > 0))
                        return done();
                streamWrite(stream, '', done);
        };

        const print = (name, text) => {
                const left = text.length - SHOWN_MAX;

                if (left > 0)
                        text = `${stringSlice(text, 0, SHOWN_MAX)}\n... ${left} more characters`;
                text += '\n';
                try {
                        streamWrite(streamGet(name), text);
                } catch {
                        /* Code has ruined what node needs to make the stream. */
                        writeSync(name === 'stdout' ? 1 : 2, text);
                }
        };

        /* An object may bring its own way to be shown, which may throw. */
        const describe = (value) => {
                try {
                        return inspect(value, SHOW_OPTIONS);
                } catch {
                        return '[a value that cannot be shown]';
                }
        };

        /*
         * Cuts the frames below the code of the turn out of a printed error: those from one of ours on, or,
         * where inspect() has left out what the cause has too, from there. " {" begins the error's
         * properties.
         */
        const FRAMES = new RegExp('\\n +(?:at (?:Session\\.post|(?:process\\.)?runNextTicks) \\(node:|' +
                                  '\\.{3} \\d+ lines).*(?:\\n +at .*)*');

        const withoutMachinery = (text) => {
                let found;

                while ((found = regexpExec(FRAMES, text)) !== null)
                        text = stringSlice(text, 0, found.index) +
                               (stringSlice(found[0], -2) === ' {' ? ' {' : '') +
                               stringSlice(text, found.index + found[0].length);
                return text;
        };

        const printValue = (value) => print('stdout', describe(value));

        const printError = (error) => print('stderr', `Uncaught ${withoutMachinery(describe(error))}`);

        /* Code that V8 has refused, as the inspector tells it. */
        const printRefusal = ({ lineNumber, columnNumber, exception, text }, code, name) => {
                const line = stringSplit(code, '\n')[lineNumber];

                if (line?.length <= SHOWN_LINE_MAX) {
                        print('stderr', `${name}:${lineNumber + 1}\n${line}`);
                        print('stderr', `${stringRepeat(' ', columnNumber)}^`);
                }
                print('stderr', `Uncaught ${withoutMachinery(exception?.description ?? text)}`);
        };

        /* Calls done() when everything has reached the pipes. */
        const drain = (done) => streamDrain(streams.stdout, () => streamDrain(streams.stderr, done));

        /* A child that shared the pipes may have made them non-blocking. */
        const restore = () => {
                streamBlock(streams.stdout);
                streamBlock(streams.stderr);
        };

        for (const name of ['stdout', 'stderr'])
                Object.defineProperty(process, name, {
                        configurable: true,
                        enumerable: true,
                        get: () => streamGet(name),
                });

        /* Without the half that tells an inspector: it keeps all that is printed while one is attached. */
        for (const name of Object.keys(console))
                if (Object.hasOwn(console.Console.prototype, name))
                        console[name] = console.Console.prototype[name].bind(console);

        return { drain, printError, printRefusal, printValue, restore };
}
