/* SPDX-License-Identifier: MIT */
/*
 * The node driver: one node process that runs turn after turn and keeps its state (see driver-protocol.h).
 * This file is a function, called with what node-source.js, -output.js, -values.js and -operate.js give.
 *
 * Theory of operation. Code runs in V8's REPL mode, which only the inspector offers: let and class can be
 * declared again and await may stand anywhere. The inspector session lives no longer than the synchronous
 * part of a turn, because V8 aborts the process when it garbage-collects a pending evaluation. So it is not
 * asked for the value either: a promise hook catches the promise of the script, the first one that is made
 * when it starts. That part and the microtasks that it leaves run under vm's breakOnSigint, so that SIGINT
 * ends even an endless loop. Later callbacks run unguarded: the agent has to kill what hangs there.
 *
 * process.exit() cannot be an exception, which code might catch: it ends the turn and terminates execution.
 * Termination, like SIGINT in a nextTick callback, skips node's bookkeeping of async ids, for which node
 * would abort: raise() has it begin anew.
 *
 * Node makes descriptor 3 close-on-exec before it runs anything, so no child has it. Code shares our globals
 * and prototypes and may ruin them: what is needed after the start is kept in constants, methods as
 * functions that take their object first, and options have no prototype.
 *
 * A turn that ends by itself has status 0: exitCode counts for process.exit() only, and no exit event is
 * emitted. Not covered: import() inside of eval() and Function(), nextTick callbacks without end, and our
 * own frames in a stack that the code itself prints.
 */
(source, output, values, operations) => {
        'use strict';

        const { Buffer, Error, Number, process, RegExp, setImmediate, String, URL } = globalThis;
        const { apply, set } = Reflect;
        const { EventEmitter } = require('events');
        const { fstatSync } = require('fs');
        const { Session } = require('inspector');
        const { Socket } = require('net');
        const { Writable } = require('stream');
        const { pathToFileURL } = require('url');
        const { promiseHooks } = require('v8');
        const { Script } = require('vm');

        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const arrayIncludes = unbound(Array.prototype.includes);
        const bufferIndexOf = unbound(Buffer.prototype.indexOf);
        const bufferSubarray = unbound(Buffer.prototype.subarray);
        const bufferToString = unbound(Buffer.prototype.toString);
        const bufferConcat = Buffer.concat;
        const eventEmit = unbound(EventEmitter.prototype.emit);
        const eventListeners = unbound(EventEmitter.prototype.listeners);
        const eventOff = unbound(EventEmitter.prototype.off);
        const eventOn = unbound(EventEmitter.prototype.on);
        const eventRawListeners = unbound(EventEmitter.prototype.rawListeners);
        const promiseThen = unbound(Promise.prototype.then);
        const regexpExec = unbound(RegExp.prototype.exec);
        const scriptRun = unbound(Script.prototype.runInThisContext);
        const stringSplit = unbound(String.prototype.split);
        const streamWrite = unbound(Writable.prototype.write);
        const { cwd, kill, pid, reallyExit } = process;
        /* What node calls to run microtasks and the like, and for uncaught exceptions. 18 to 24 have it. */
        const { _tickCallback: runTicks = () => {}, _fatalException: fatalException = () => {} } = process;

        const CONTROL_FD = 3;
        const FAILED = 1, INTERRUPTED = 130;
        /* The global by which code calls us: it can be neither replaced nor deleted. */
        const BRIDGE = '__sandbox_driver';
        const GUARD_OPTIONS = { __proto__: null, breakOnSigint: true, displayErrors: false };
        const UNWIND = new Error('process.exit() has ended the turn');

        let turn = null;                        /* the one that runs, until its report is out */
        let turns = 0;
        let operating = false;
        let received = Buffer.alloc(0);

        /* ---- running code ---- */

        const session = new Session();
        const guardScript = new Script(`${BRIDGE}.run()`);
        let guarded = false, action = null;
        let unwinding = false;                  /* process.exit() is on its way through the stack */
        let unhook = () => {};

        /* Makes SIGINT throw ERR_SCRIPT_EXECUTION_INTERRUPTED out of whatever what() is doing. */
        const guard = (what) => {
                if (guarded)
                        return what();
                guarded = true;
                action = what;
                try {
                        scriptRun(guardScript, GUARD_OPTIONS);
                } finally {
                        guarded = false;
                        if (eventListeners(process, 'SIGINT').length > 1)
                                rearm();
                }
        };

        /* The script's way back to us. Code can call it, too: to no avail. */
        const runAction = () => {
                const what = action;

                action = null;
                what?.();
        };

        /* What else escapes the guard comes from a nextTick callback: it is an uncaught exception. */
        const attempt = (mine, what) => {
                try {
                        guard(what);
                } catch (error) {
                        if (error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') {
                                detach();
                                turnEnd(mine, INTERRUPTED);
                                raise(UNWIND);
                        } else if (!unwinding)
                                raise(error);
                }
        };

        const detach = () => {
                session.disconnect();
                unhook();
        };

        /* Runs the script up to its first await: its promise, or why V8 refuses to run it. */
        const evaluate = (expression) => {
                let promise = null, refusal = null, attached = true;

                unhook = promiseHooks.onInit((made) => {
                        unhook();
                        promise ??= made;
                });
                session.connect();
                session.post('Runtime.evaluate', { expression, replMode: true }, (error, reply) => {
                        if (attached)
                                refusal = error ? { text: error.message } : reply.exceptionDetails ?? null;
                });
                attached = false;
                detach();
                return { promise, refusal };
        };

        /* The specifier is relative to the working directory. */
        const importModule = async (specifier, options) => {
                const name = String(specifier);
                const relative = regexpExec(/^\.{0,2}\//, name) !== null;

                const found = relative ? new URL(name, pathToFileURL(`${cwd()}/`)).href : name;
                const module = await import(found, options);

                operations.remember(module, found);
                return module;
        };

        const driver = { __proto__: null, session, bridge: BRIDGE, run: evaluate, importModule };

        /* ---- turns ---- */

        const turnStart = (token, code) => {
                const mine = { __proto__: null, token, name: `<turn-${++turns}>`, over: false, status: 0 };

                turn = mine;
                restore();
                attempt(mine, () => {
                        turnEvaluate(mine, code);
                        runTicks();
                });
                restore();
        };

        const turnEvaluate = (mine, code) => {
                const text = source.prepare(code, `${BRIDGE}.import`);
                const named = (variant) => evaluate(`${variant}\n//# sourceURL=${mine.name}`);
                const { promise, refusal } = source.evaluateAnyKind(text, named);

                if (refusal !== null)
                        return turnSettle(mine, FAILED, () => output.printRefusal(refusal, code, mine.name));
                promiseThen(promise,
                            ({ '.repl_result': value }) => turnSettle(mine, 0, () => {
                                    if (value !== undefined)
                                            output.printValue(value);
                            }),
                            (error) => turnSettle(mine, FAILED, () => output.printError(error)));
        };

        const turnSettle = (mine, status, print) => {
                if (mine.over)
                        return;
                attempt(mine, print);
                turnEnd(mine, status);
        };

        /* The report waits for an immediate: by then rejections that nobody handles have been printed. */
        const turnEnd = (mine, status) => {
                if (mine === null || mine.over)
                        return;
                mine.over = true;
                mine.status = status;
                setImmediate(turnReport);
        };

        const turnReport = () => output.drain(() => {
                const { token, status } = turn;

                turn = null;
                process.exitCode = undefined;
                controlWrite(values.before(token, `done ${token} ${status} kept\n`));
                turnNext();
        });

        /* Signals and callbacks of earlier turns mean nothing to it. */
        const operationStart = (verb, token, payload) => {
                operating = true;
                operations.operate(driver, verb, stringSplit(payload, '\n'), () => {
                        operating = false;
                        controlWrite(`done ${token} 0 kept\n`);
                        turnNext();
                });
        };

        /* Starts what is next if all of it has come: a line "VERB TOKEN LENGTH", then the code or payload. */
        const turnNext = () => {
                const end = bufferIndexOf(received, '\n');

                if (turn !== null || operating || end < 0)
                        return;
                const words = stringSplit(bufferToString(received, 'latin1', 0, end), ' ');
                const rest = end + 1 + Number(words[2]);

                if (!(rest > end))
                        return controlLost();
                if (received.length < rest)
                        return;
                const code = bufferToString(received, 'utf8', end + 1, rest);

                received = bufferSubarray(received, rest);
                (words[0] === 'execute' ? turnStart(words[1], code) : operationStart(words[0], words[1], code));
        };

        /* ---- the end of the process, as code sees it ---- */

        /* After a terminated immediate those that follow are lost, but still counted: node would spin. */
        const isAmongImmediates = () => {
                const { stackTraceLimit, prepareStackTrace } = Error;

                set(Error, 'stackTraceLimit', Infinity);
                set(Error, 'prepareStackTrace', undefined);
                const { stack } = new Error();
                set(Error, 'stackTraceLimit', stackTraceLimit);
                set(Error, 'prepareStackTrace', prepareStackTrace);
                return regexpExec(/processImmediate \(node:/, stack) !== null;
        };

        /* Our own functions on the stack have not ended either. */
        const resume = () => {
                detach();
                rearm();
                guarded = false;
                unwinding = false;
        };

        const terminate = () => {
                unwinding = true;
                raise(UNWIND);
                try {
                        session.connect();
                } catch {
                        /* It is, in the synchronous part of a turn. */
                }
                session.post('Runtime.terminateExecution');
                for (;;);
        };

        /* First resume(), then the report: SIGINT may come as soon as that is out. */
        process.exit = function exit(code = process.exitCode) {
                if (operating)
                        controlLost();
                const catchable = isAmongImmediates();

                if (!catchable)
                        setImmediate(resume);
                turnEnd(turn, Number(code ?? 0) & 0xff);
                if (catchable)
                        throw UNWIND;
                terminate();
        };

        /* ---- signals and stray exceptions ---- */

        let ownInterrupt = false;

        const onInterrupt = () => {
                if (!ownInterrupt)
                        turnEnd(turn, INTERRUPTED);
        };

        /* Code that interrupts itself means its own handlers, if any. In the guard they are set aside. */
        const interruptSelf = () => {
                ownInterrupt = eventListeners(process, 'SIGINT').length > 1;
                try {
                        eventEmit(process, 'SIGINT', 'SIGINT', 2);
                } finally {
                        ownInterrupt = false;
                }
        };

        process.kill = (target, signal) => {
                if (target !== pid || (signal !== 'SIGINT' && signal !== 2))
                        return apply(kill, process, [target, signal]);
                setImmediate(interruptSelf);
                return true;
        };

        /* Does what an uncaught exception does, also to the ids of running callbacks: they are forgotten. */
        const raise = (error) => {
                restore();
                apply(fatalException, process, [error, false]);
        };

        /* Gets rejections that nobody handles, too. A callback: removeAllListeners() removes listeners. */
        const onUncaught = (error) => {
                if (error === UNWIND)
                        return;
                try {
                        if (!eventEmit(process, 'uncaughtException', error, 'uncaughtException'))
                                output.printError(error);
                } catch (another) {
                        output.printError(another);
                }
        };

        eventOn(process, 'SIGINT', onInterrupt);
        /* Listeners that there must be: node's, which watch out for listeners of signals, and then ours. */
        const events = ['newListener', 'removeListener', 'SIGINT'];
        const needed = events.map((event) => eventListeners(process, event));

        /* The guard leaves SIGINT at its default. Node sees to listeners, but not to those added inside. */
        const rearm = () => {
                const all = eventRawListeners(process, 'SIGINT');

                for (let i = 0; i < all.length; i++)
                        eventOff(process, 'SIGINT', all[i]);
                for (let i = 0; i < all.length; i++)
                        eventOn(process, 'SIGINT', all[i]);
        };

        /* Puts back what code has taken away. */
        const restore = () => {
                let missing = false;

                for (let i = 0; i < events.length; i++)
                        for (let k = 0; k < needed[i].length; k++) {
                                missing ||= !arrayIncludes(eventListeners(process, events[i]), needed[i][k]);
                                if (missing) {
                                        eventOff(process, events[i], needed[i][k]);
                                        eventOn(process, events[i], needed[i][k]);
                                }
                        }
                if (!process.hasUncaughtExceptionCaptureCallback())
                        process.setUncaughtExceptionCaptureCallback(onUncaught);
                output.restore();
        };

        /* ---- the agent ---- */

        const control = new Socket({ fd: CONTROL_FD, readable: true, writable: true });
        const controlInode = fstatSync(CONTROL_FD).ino;

        /* Code has closed the socket: no turn can come, and the state is lost. */
        const controlLost = () => apply(reallyExit, process, [FAILED]);

        const isControlIntact = () => {
                try {
                        return fstatSync(CONTROL_FD).ino === controlInode;
                } catch {
                        return false;
                }
        };

        const controlWrite = (line) => {
                if (!isControlIntact())
                        controlLost();
                streamWrite(control, line);
        };

        control.on('data', (chunk) => {
                received = received.length > 0 ? bufferConcat([received, chunk]) : chunk;
                turnNext();
        });
        control.on('end', () => apply(reallyExit, process, [0]));
        control.on('error', controlLost);

        Object.defineProperty(globalThis, BRIDGE, {
                value: Object.freeze({ __proto__: null, import: importModule, run: runAction, take: operations.take }),
        });
        /* What -e leaves: the name of no file, and our text, which a cluster would run again. */
        delete globalThis.__filename;
        delete process._eval;
        process.execArgv = [];
        operations.begin();

        restore();
        controlWrite('ready\n');
}
