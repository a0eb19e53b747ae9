/* SPDX-License-Identifier: MIT */
/*
 * Restore of the node driver: makes the variables of a state that node-state.js has saved. A function, called
 * in the same realm as that with what it gives. What the state holds is not to be trusted: a node that makes no
 * sense fails, with all that refers to it, and the rest is restored.
 */
(main, state) => {
        'use strict';

        const { INTEGRITY, copy, dataOf, findKnown, isObject, refuse, whyOf } = state;
        const { defineProperty, setPrototypeOf } = Reflect;
        const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
        const isArray = (value) => Array.isArray(value);
        const kindOf = (node) => isArray(node) ? isArray(node[0]) ? node[0][0] : node[0] : undefined;

        /* Function text is an expression, or with other text around it: that of a method. */
        const compile = (text) => {
                if (typeof text !== 'string')
                        refuse('its source text is missing');
                try {
                        return main.run(`(${text}\n)`);
                } catch (error) {
                        if (!main.isSyntaxError(error))
                                throw error;
                }
                const object = main.run(`({${text}\n})`);

                return dataOf(object, Reflect.ownKeys(object)[0]);
        };

        const restorer = (nodes) => {
                const made = [], failed = [];
                const fail = (i, error) => {
                        failed[i] ??= whyOf(error);
                };

                const valueOf = (slot) => {
                        if (!isArray(slot))
                                return isObject(slot) ? refuse('it is damaged') : slot;
                        const [number] = copy(slot);

                        if (failed[number] !== undefined)
                                refuse(failed[number]);
                        return number in made ? made[number] : refuse('it is damaged');
                };

                const each = (what) => {
                        for (let i = 0; i < nodes.length; i++)
                                if (failed[i] === undefined)
                                        try {
                                                what(nodes[i], i, kindOf(nodes[i]));
                                        } catch (error) {
                                                fail(i, error);
                                        }
                };

                /* Without what they refer to. */
                const makeShell = (node, i, kind) => {
                        switch (kind) {
                        case 'leaf':
                                if (!isObject(node[0][1]))
                                        refuse('it is damaged');
                                made[i] = node[0][1];
                                break;
                        case 'known': made[i] = findKnown(copy(node[1])); break;
                        case 'symbol': made[i] = Symbol.for(String(node[1])); break;
                        case 'object': case 'array': case 'map': case 'set': case 'error':
                                made[i] = main.make[kind]();
                                break;
                        case 'view': case 'function': case 'prototype': case 'import': break;
                        default: refuse('it is damaged');
                        }
                };

                const makeView = (node, i, kind) => {
                        if (kind === 'view')
                                made[i] = main.make.view(String(node[0][1]), valueOf(node[0][2]), valueOf(node[0][3]),
                                                         valueOf(node[0][4]));
                };

                /* One may need another that has its name already, as a class its base. */
                const makeFunctions = (bind) => {
                        let left = [];

                        each((node, i, kind) => {
                                if (kind === 'function')
                                        left.push(i);
                        });
                        for (let before = -1; left.length !== before;) {
                                before = left.length;
                                left = left.filter((i) => {
                                        try {
                                                const value = compile(nodes[i][1]);

                                                if (typeof value !== 'function')
                                                        refuse('its source text makes no function');
                                                made[i] = value;
                                                failed[i] = undefined;
                                                bind(i);
                                                return false;
                                        } catch (error) {
                                                delete made[i];
                                                failed[i] = whyOf(error);
                                                return true;
                                        }
                                });
                        }
                };

                const makePrototype = (node, i, kind) => {
                        if (kind === 'prototype')
                                made[i] = dataOf(valueOf(node[1]), 'prototype') ?? refuse('it is damaged');
                };

                /* [[keys], [slots], [flags] or null] */
                const eachProperty = (properties, what) => {
                        for (let i = 0; i < properties[0].length; i++)
                                what(String(properties[0][i]), properties[1][i], properties[2]?.[i] ?? 7);
                };

                const eachSlot = (node, what) => {
                        const kind = kindOf(node);

                        if (kind === 'function') {
                                eachProperty(node[3], (key, slot) => what(slot));
                                if (node[4])
                                        eachProperty(node[4], (key, slot) => what(slot));
                        } else if (kind === 'prototype')
                                what(node[1]);
                        else if (isArray(node[0])) {
                                if (node[1] !== undefined)
                                        what(node[1]);
                                eachProperty(node[2], (key, slot) => what(slot));
                                if (kind === 'map' || kind === 'set')
                                        copy(node[0][1]).forEach(what);
                        }
                };

                /* What refers to a node that has failed has failed. */
                const spread = () => {
                        for (let before = -1, now = 0; now !== before;) {
                                before = now;
                                each((node) => eachSlot(node, valueOf));
                                now = failed.filter((why) => why !== undefined).length;
                        }
                };

                const define = (object, properties) => eachProperty(properties, (key, slot, flags) => {
                        const descriptor = { __proto__: null, value: valueOf(slot), enumerable: (flags & 1) !== 0,
                                             writable: (flags & 2) !== 0, configurable: (flags & 4) !== 0 };

                        defineProperty(object, key, descriptor);
                });

                const fill = (node, i, kind) => {
                        if (kind === 'function') {
                                if (dataOf(made[i], 'name') !== node[2])
                                        defineProperty(made[i], 'name', { __proto__: null, value: String(node[2]) });
                                define(made[i], node[3]);
                                if (node[4])
                                        define(dataOf(made[i], 'prototype'), node[4]);
                        } else if (isArray(node[0])) {
                                if (kind === 'map' || kind === 'set') {
                                        const list = copy(node[0][1]);

                                        for (let k = 0; k + 1 < list.length; k += 2)
                                                main.make[`${kind}Add`](made[i], valueOf(list[k]),
                                                                valueOf(list[k + 1]));
                                }
                                define(made[i], node[2]);
                                const prototype = valueOf(node[1]);

                                setPrototypeOf(made[i], prototype);
                                if (kind === 'error')
                                        defineProperty(made[i], 'stack', {
                                                __proto__: null, writable: true, configurable: true,
                                                value: `${dataOf(prototype ?? {}, 'name')}: ` +
                                                       `${dataOf(made[i], 'message')}`,
                                        });
                        }
                };

                const settle = (node, i) => {
                        if (isArray(node[0]) && node[3])
                                INTEGRITY[node[3]]?.(made[i]);
                };

                return { each, fill, makeFunctions, makePrototype, makeShell, makeView, made, settle, spread, valueOf,
                         fail };
        };

        /* Modules are loaded again; those that import() has given before the rest. */
        const importAll = async (nodes, { made, fail }) => {
                for (let i = 0; i < nodes.length; i++)
                        if (kindOf(nodes[i]) === 'import')
                                try {
                                        made[i] = await main.importModule(String(nodes[i][1]));
                                } catch (error) {
                                        fail(i, error);
                                }
        };

        const restoreVariables = async (nodes, names, report) => {
                const graph = restorer(nodes);
                const bound = new Set();
                const bind = ([name, lexical, slot]) => {
                        if (bound.has(name))
                                return;
                        if (typeof name !== 'string' || (lexical && !NAME.test(name)))
                                refuse('it is no name');
                        main.bind(name, graph.valueOf(slot), lexical === true);
                        bound.add(name);
                };
                const bindNode = (number) => names.forEach((entry) => {
                        if (isArray(entry[2]) && entry[2][0] === number)
                                bind(entry);
                });

                graph.each(graph.makeShell);
                await importAll(nodes, graph);
                graph.each(graph.makeView);
                graph.each((node, i, kind) => (kind === 'known' || kind === 'import') && bindNode(i));
                graph.makeFunctions(bindNode);
                graph.each(graph.makePrototype);
                graph.spread();
                graph.each(graph.fill);
                graph.each(graph.settle);
                for (const entry of names)
                        try {
                                bind(entry);
                        } catch (error) {
                                report.skip(typeof entry[0] === 'string' ? entry[0] : '?', whyOf(error));
                        }
        };

        const restoreRest = (directory, changes, report) => {
                try {
                        main.chdir(String(directory));
                } catch {
                        report.skip('working directory', `${String(directory)} is not there any more`);
                }
                for (const change of copy(changes))
                        if (isArray(change) && typeof change[0] === 'string')
                                if (change[1] === null)
                                        Reflect.deleteProperty(main.environment, change[0]);
                                else
                                        main.environment[change[0]] = String(change[1]);
        };

        const restore = async (statePath, reportPath) => {
                const report = state.makeReport();
                let why = null;

                try {
                        const data = main.readState(statePath, state.MAGIC);
                        const root = data === null ? null : main.deserialize(data);

                        if (!isArray(root) || ![0, 1, 3].every((i) => isArray(root[i])))
                                refuse('not a state that this driver understands');
                        restoreRest(root[2], root[3], report);
                        await restoreVariables(copy(root[0]), copy(root[1]).filter(isArray).map(copy), report);
                } catch (error) {
                        why = whyOf(error);
                }
                main.write(reportPath, report.text(why === null, why));
        };

        return { restore };
}
