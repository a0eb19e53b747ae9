/* SPDX-License-Identifier: MIT */
/*
 * What the node driver does besides turns: save, restore, list, show (driver-protocol.h). This file is a function,
 * called once, with the functions node-state.js, node-restore.js and node-list.js, which do the work. Their text is
 * compiled when it is first needed, in a realm of its own. Here is what only the turns' realm can give them. All is
 * synchronous but import(): no callback of the code runs in between.
 */
(stateOf, restoreOf, listOf) => {
        'use strict';

        const { Buffer, Error, Map, Object, process, Set, SyntaxError } = globalThis;
        const { apply } = Reflect;
        const { EventEmitter } = require('events');
        const { closeSync, openSync, readSync, writeSync } = require('fs');
        const types = { __proto__: null, ...require('util').types };
        const { Deserializer, Serializer } = require('v8');
        const { createContext, Script } = require('vm');

        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const bufferCopy = Buffer.from, bufferConcat = Buffer.concat, byteLength = Buffer.byteLength;
        const bufferSubarray = unbound(Buffer.prototype.subarray);
        const bufferToString = unbound(Buffer.prototype.toString);
        const functionText = unbound(Function.prototype.toString);
        const mapGet = unbound(WeakMap.prototype.get), mapSet = unbound(WeakMap.prototype.set);
        const mapAdd = unbound(Map.prototype.set), setAdd = unbound(Set.prototype.add);
        const scriptRun = unbound(Script.prototype.runInThisContext);
        const scriptRunIn = unbound(Script.prototype.runInContext);
        const { chdir, cwd, env, getActiveResourcesInfo, moduleLoadList } = process;
        const load = require, { cache } = require;
        const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames } = Object;
        const promiseThen = unbound(Promise.prototype.then);
        const { readHeader, readValue } = Deserializer.prototype;
        const { releaseBuffer, writeHeader, writeValue } = Serializer.prototype;
        const MAKERS = [Object, Array, Map, Set, Date, RegExp, Error, AggregateError, EvalError, RangeError,
                        ReferenceError, SyntaxError, TypeError, URIError, Boolean, Number, String, BigInt, ArrayBuffer,
                        DataView, Object.getPrototypeOf(Uint8Array), Int8Array, Uint8Array, Uint8ClampedArray,
                        Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array, BigInt64Array,
                        BigUint64Array, Buffer, EventEmitter];
        const OPTIONS = { __proto__: null };
        const PIECE = 65536;

        const imported = new WeakMap(), lazy = { __proto__: null };
        let operations = null, globalNames, given;

        const writeAll = (fd, data) => {
                for (let at = 0; at < data.length;)
                        at += writeSync(fd, data, at, data.length - at);
        };

        const write = (path, ...parts) => {
                const fd = openSync(path, 'w');

                try {
                        for (let i = 0; i < parts.length; i++)
                                writeAll(fd, typeof parts[i] === 'string' ? bufferCopy(parts[i]) : parts[i]);
                } finally {
                        closeSync(fd);
                }
        };

        const read = (path) => {
                const fd = openSync(path, 'r'), pieces = [];

                try {
                        for (let got = 1; got > 0;) {
                                const piece = Buffer.allocUnsafe(PIECE);

                                got = readSync(fd, piece, 0, PIECE, null);
                                pieces[pieces.length] = bufferSubarray(piece, 0, got);
                        }
                } finally {
                        closeSync(fd);
                }
                return bufferConcat(pieces);
        };

        const evaluate = (source) => scriptRun(new Script(source, OPTIONS), OPTIONS);

        /* What the turns' realm gives to the other. session is the driver's own. */
        const makeMain = ({ session, bridge, run, importModule }) => {
                const post = (method, parameters) => {
                        let answer = null;

                        session.post(method, parameters, (error, reply) => {
                                answer = error ? null : reply;
                        });
                        return answer;
                };

                const attached = (what) => {
                        session.connect();
                        try {
                                return what();
                        } finally {
                                session.disconnect();
                        }
                };

                /* The kinds of the scopes that a function sees: Global, Script, Block, Closure (name). */
                const scopes = (value) => attached(() => {
                        given = value;
                        const { objectId } = post('Runtime.evaluate', { expression: `${bridge}.take()` }).result;
                        const { internalProperties } = post('Runtime.getProperties',
                                                            { objectId, ownProperties: true });
                        const kinds = [];

                        for (let i = 0; i < internalProperties.length; i++)
                                if (internalProperties[i].name === '[[Scopes]]') {
                                        const { result } = post('Runtime.getProperties', {
                                                objectId: internalProperties[i].value.objectId, ownProperties: true });

                                        for (let k = 0; k < result.length; k++)
                                                kinds[k] = String(result[k].value?.description);
                                }
                        return kinds;
                });

                const bind = (name, value, lexical) => {
                        given = value;
                        if (!lexical)
                                defineProperty(globalThis, name, { __proto__: null, value, writable: true,
                                                                          enumerable: true, configurable: true });
                        else if (run(`let ${name} = ${bridge}.take()`).refusal !== null) {
                                given = value;
                                if (run(`${name} = ${bridge}.take()`).refusal !== null)
                                        throw new Error('node does not take the name');
                        }
                };

                const { builtinModules } = load('module');

                const loadedModules = () => {
                        const names = ['fs/promises'];
                        const isPublic = { __proto__: null };

                        for (let i = 0; i < builtinModules.length; i++)
                                isPublic[`NativeModule ${builtinModules[i]}`] = builtinModules[i];
                        for (let i = 0; i < moduleLoadList.length; i++)
                                if (isPublic[moduleLoadList[i]] !== undefined)
                                        names[names.length] = isPublic[moduleLoadList[i]];
                        return names;
                };

                const serialize = (value) => {
                        const serializer = new Serializer();

                        apply(writeHeader, serializer, []);
                        apply(writeValue, serializer, [value]);
                        return apply(releaseBuffer, serializer, []);
                };

                const deserialize = (buffer) => {
                        const deserializer = new Deserializer(buffer);

                        apply(readHeader, deserializer, []);
                        return apply(readValue, deserializer, []);
                };

                const makeView = (name, buffer, offset, length) => {
                        for (let i = 0; i < MAKERS.length; i++)
                                if (MAKERS[i].name === name)
                                        return new MAKERS[i](buffer, offset, length);
                        throw new Error('there is no such array');
                };

                return {
                        __proto__: null, types, global: globalThis, plain: MAKERS,
                        globalNames: () => globalNames,
                        version: process.versions.node, environment: env,
                        scopes, bind, loadedModules, serialize, deserialize, write, importModule,
                        isLazy: (name) => lazy[name] === true,
                        read: (name) => evaluate(`(${name})`), run: evaluate,
                        isSyntaxError: (error) => error instanceof SyntaxError,
                        lexicalNames: () => attached(() => post('Runtime.globalLexicalScopeNames')?.names ?? []),
                        loadedFiles: () => cache,
                        require: (name) => load(name),
                        importedAs: (value) => mapGet(imported, value),
                        cwd: () => apply(cwd, process, []),
                        chdir: (path) => apply(chdir, process, [path]),
                        resources: () => apply(getActiveResourcesInfo ?? (() => []), process, []),
                        bytes: (text) => byteLength(text),
                        readText: (path) => bufferToString(read(path), 'latin1'),
                        readState: (path, magic) => {
                                const data = read(path), length = magic.length;

                                return bufferToString(data, 'latin1', 0, length) === magic
                                        ? bufferSubarray(data, length) : null;
                        },
                        make: {
                                __proto__: null,
                                object: () => ({}), array: () => [], map: () => new Map(), set: () => new Set(),
                                error: () => new Error(), view: makeView,
                                mapAdd: (map, key, value) => mapAdd(map, key, value),
                                setAdd: (set, key) => setAdd(set, key),
                        },
                };
        };

        const learn = (driver) => {
                const realm = createContext({ __proto__: null });
                const make = (text) => scriptRunIn(new Script(`(${functionText(text)})`, OPTIONS), realm, OPTIONS);
                const main = makeMain(driver), state = make(stateOf)(main);

                return { __proto__: null, save: state.save, restore: make(restoreOf)(main, state).restore,
                         ...make(listOf)(main, state) };
        };

        return {
                take: () => {
                        const value = given;

                        given = undefined;
                        return value;
                },
                /* What import() has given, with what it would be asked for again. */
                remember: (value, specifier) => mapSet(imported, value, specifier),
                /* After the start, when all the globals are there that are node's. */
                begin: () => {
                        globalNames = getOwnPropertyNames(globalThis);
                        for (let i = 0; i < globalNames.length; i++)
                                if (getOwnPropertyDescriptor(globalThis, globalNames[i]).get)
                                        lazy[globalNames[i]] = true;
                },
                operate: (driver, verb, lines, done) => {
                        try {
                                operations ??= learn(driver);
                                const result = operations[verb](lines[0], lines[1]);

                                if (result !== undefined)
                                        return promiseThen(result, done, done);
                        } catch {
                                /* Without a report, or with half an answer, it is known to have failed. */
                        }
                        done();
                },
        };
}
