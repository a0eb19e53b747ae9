/* SPDX-License-Identifier: MIT */
/*
 * Save and restore of the node driver. This file is a function that is called when it is first needed, in a
 * realm of its own, so that its objects and prototypes are none that code could have changed. main is what
 * node-operate.js knows of the turns' realm.
 *
 * A state is a graph: a list of nodes [kind, ...], in which each object is one node, whatever refers to it.
 * A slot is a primitive itself, or [number of a node]. The list is written by V8's serializer, which keeps
 * what is in leaves as it is: numbers, strings, dates, buffers. It could take whole objects, too, but it
 * refuses functions anywhere in them, forgets classes, and runs getters.
 *
 * Functions and classes are kept as source text. The inspector tells whether one uses variables of a function
 * that made it: those are refused, since a closure cannot be saved. What belongs to node is kept by its name,
 * and so are modules. A variable is saved whole or not at all. Its own errors are thrown as Refusal.
 */
(main) => {
        'use strict';

        const { types } = main;
        const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const getter = (prototype, name) => unbound(getOwnPropertyDescriptor(prototype, name).get);
        const viewPrototype = getPrototypeOf(Uint8Array.prototype);
        const viewName = getter(viewPrototype, Symbol.toStringTag);
        const dataViewOf = ['buffer', 'byteOffset', 'byteLength'].map((n) => getter(DataView.prototype, n));
        const viewOf = ['buffer', 'byteOffset', 'length'].map((n) => getter(viewPrototype, n));
        const eachOfMap = unbound(Map.prototype.forEach);
        const eachOfSet = unbound(Set.prototype.forEach);
        const textOf = unbound(Function.prototype.toString);

        const MAGIC = 'nix-sandbox node state 1\n';
        const SKIPPED_MAX = 100;
        const FUNCTION_KEYS = { __proto__: null, length: 1, name: 1, prototype: 1, arguments: 1, caller: 1 };
        const INTEGRITY = [() => {}, Object.preventExtensions, Object.seal, Object.freeze];

        class Refusal extends Error {}
        const refuse = (why) => {
                throw new Refusal(why);
        };

        const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
        /* Arrays of the other realm have methods and iterators that code may have changed. */
        const copy = (array) => {
                const mine = [];

                for (let i = 0; i < array.length; i++)
                        mine[i] = array[i];
                return mine;
        };
        /* The value of a property that is no accessor. */
        const dataOf = (object, key) => getOwnPropertyDescriptor(object, key)?.value;

        /* ---- what belongs to node ---- */

        /* Paths to node's objects, of at most three names from a global or a module. */
        const makeKnown = () => {
                const known = new Map();
                const enter = (value, path) => {
                        if (!isObject(value) || types.isProxy(value) || known.has(value))
                                return;
                        known.set(value, path);
                        if (path.length > 4)
                                return;
                        for (const key of ownKeys(value))
                                if (typeof key === 'string')
                                        enter(dataOf(value, key), [...path, key]);
                };

                known.set(main.global, ['global']);
                for (const maker of copy(main.plain))   /* even if the global is another by now */
                        if (!['Buffer', 'EventEmitter', 'TypedArray'].includes(maker.name))
                                enter(maker, ['global', maker.name]);
                for (const name of copy(main.loadedModules()))
                        if (name === 'module')          /* by way of its cache it leads to all files */
                                known.set(main.require(name), ['module', name]);
                        else
                                try {
                                        enter(main.require(name), ['module', name]);
                                } catch {
                                        /* Code has ruined what it takes to load it. */
                                }
                for (const name of copy(main.globalNames()))
                        if (name === 'require' || name === 'module')
                                known.set(dataOf(main.global, name), ['global', name]);
                        else
                                enter(dataOf(main.global, name), ['global', name]);
                const files = main.loadedFiles();

                for (const name of ownKeys(files))
                        enter(dataOf(dataOf(files, name) ?? {}, 'exports'), ['module', name]);
                return known;
        };

        const findKnown = (path) => {
                let value = path[0] === 'module' ? main.require(path[1]) : main.global;

                for (const key of path.slice(path[0] === 'module' ? 2 : 1)) {
                        value = isObject(value) ? dataOf(value, key) : undefined;
                        if (value === undefined)
                                refuse(`${path.slice(1).join('.')} is not there`);
                }
                return value;
        };

        /* ---- save ---- */

        const saver = () => {
                const known = makeKnown();
                const plain = new Set(copy(main.plain).map((maker) => dataOf(maker, 'prototype')));
                const nodes = [];
                let numbers = new Map(), queue = [];

                const slot = (value) => {
                        if (!isObject(value) && typeof value !== 'symbol')
                                return value;
                        if (!numbers.has(value)) {
                                numbers.set(value, nodes.length);
                                nodes.push(null);
                                queue.push(value);
                        }
                        return [numbers.get(value)];
                };

                const nameOf = (prototype) => {
                        const maker = dataOf(prototype, 'constructor');
                        const name = typeof maker === 'function' ? dataOf(maker, 'name') : '';

                        return typeof name === 'string' && name !== '' ? name.slice(0, 60) : 'object of node';
                };

                /* The class that a prototype belongs to, if it is one of code's. */
                const classOf = (prototype) => {
                        const maker = dataOf(prototype, 'constructor');

                        return typeof maker === 'function' && !types.isProxy(maker) && !known.has(maker) &&
                               dataOf(maker, 'prototype') === prototype ? maker : null;
                };

                /* Instances of node's own classes mean more than their properties. */
                const checkPrototypes = (object) => {
                        for (let p = getPrototypeOf(object); p !== null && !plain.has(p); p = getPrototypeOf(p)) {
                                if (types.isProxy(p))
                                        refuse('a proxy cannot be saved');
                                if (known.has(p))
                                        refuse(`a ${nameOf(p)} cannot be saved`);
                                const maker = classOf(p);

                                if (maker === null)
                                        continue;
                                checkFunction(maker, nameOf(p));
                                if (/(?<![\w"'`])#[A-Za-z_$][\w$]*/.test(textOf(maker)))
                                        refuse(`a ${nameOf(p)} cannot be saved: it may have private fields`);
                        }
                };

                const checkFunction = (value, name) => {
                        if (/\{ \[native code\] \}$/.test(textOf(value)))
                                refuse(`${name ?? 'a function'} cannot be saved: it is not written in JavaScript`);
                        if (copy(main.scopes(value)).some((scope) => scope !== 'Script' && scope !== 'Global'))
                                refuse(name ? `a ${name} cannot be saved`
                                            : 'a function cannot be saved that uses variables of another');
                };

                const properties = (object, filter) => {
                        const keys = [], slots = [], flags = [];

                        for (const key of ownKeys(object)) {
                                if (key === 'stack' && types.isNativeError(object))
                                        continue;       /* made only when asked for, and then by code */
                                const { value, get, set, enumerable, writable, configurable } =
                                        getOwnPropertyDescriptor(object, key);

                                if (typeof key === 'symbol' || !filter(key, enumerable))
                                        continue;
                                if (get !== undefined || set !== undefined)
                                        refuse(`a property with a getter or setter cannot be saved: ${key}`);
                                keys.push(key);
                                slots.push(slot(value));
                                flags.push((enumerable ? 1 : 0) + (writable ? 2 : 0) + (configurable ? 4 : 0));
                        }
                        return [keys, slots, flags.every((f) => f === 7) ? null : flags];
                };

                const integrity = (object) => Object.isFrozen(object) ? 3 : Object.isSealed(object) ? 2
                        : Object.isExtensible(object) ? 0 : 1;

                const functionNode = (value) => {
                        checkFunction(value);
                        const text = textOf(value), prototype = dataOf(value, 'prototype');
                        const own = (key, enumerable) => enumerable && FUNCTION_KEYS[key] === undefined;
                        const added = isObject(prototype) && classOf(prototype) === value
                                ? properties(prototype, (key, enumerable) => enumerable && key !== 'constructor')
                                : null;

                        return ['function', text, String(dataOf(value, 'name') ?? ''), properties(value, own), added];
                };

                const entries = (each, object) => {
                        const list = [];

                        each(object, (value, key) => list.push(slot(key), slot(value)));
                        return list;
                };

                const viewNode = (value) => types.isDataView(value)
                        ? ['view', 'DataView', ...dataViewOf.map((get) => slot(get(value)))]
                        : ['view', viewName(value), ...viewOf.map((get) => slot(get(value)))];

                /* What is in an object besides its properties. */
                const shellOf = (value) => {
                        if (types.isPromise(value) || types.isWeakMap(value) || types.isWeakSet(value) ||
                            types.isGeneratorObject(value) || types.isExternal(value) ||
                            types.isSharedArrayBuffer(value) || types.isMapIterator(value) ||
                            types.isSetIterator(value) || types.isModuleNamespaceObject(value))
                                refuse(`a ${nameOf(getPrototypeOf(value) ?? {})} cannot be saved`);
                        if (types.isDate(value) || types.isRegExp(value) || types.isArrayBuffer(value) ||
                            types.isBoxedPrimitive(value))
                                return ['leaf', value];
                        if (ArrayBuffer.isView(value))
                                return viewNode(value);
                        if (types.isMap(value))
                                return ['map', entries(eachOfMap, value)];
                        if (types.isSet(value))
                                return ['set', entries(eachOfSet, value)];
                        return [types.isNativeError(value) ? 'error' : Array.isArray(value) ? 'array' : 'object'];
                };

                const nodeOf = (value) => {
                        if (typeof value === 'symbol')
                                return ['symbol', Symbol.keyFor(value) ?? refuse('a symbol cannot be saved')];
                        if (types.isProxy(value))
                                refuse('a proxy cannot be saved');
                        if (known.has(value))
                                return ['known', known.get(value)];
                        if (main.importedAs(value) !== undefined)
                                return ['import', main.importedAs(value)];
                        if (typeof value === 'function')
                                return functionNode(value);
                        const maker = classOf(value);

                        if (maker !== null)
                                return ['prototype', slot(maker)];
                        checkPrototypes(value);
                        const shell = shellOf(value), kind = shell[0], prototype = getPrototypeOf(value);
                        const isElement = (key) => kind === 'view' && /^\d+$/.test(key);
                        const isOwn = (key) => !isElement(key) && !(kind === 'leaf' && key === 'lastIndex');

                        return [shell, prototype === null ? null : slot(prototype),
                                properties(value, isOwn), integrity(value)];
                };

                /* All or nothing: what was entered for a variable that is refused is taken back. */
                const save = (value) => {
                        const begin = nodes.length, entered = [];

                        queue = entered;
                        try {
                                const result = slot(value);

                                for (let i = 0; i < entered.length; i++)
                                        nodes[numbers.get(entered[i])] = nodeOf(entered[i]);
                                return result;
                        } catch (error) {
                                for (const each of entered)
                                        numbers.delete(each);
                                nodes.length = begin;
                                throw error;
                        }
                };

                return { nodes, save };
        };

        /* ---- report ---- */

        const makeReport = () => {
                const skipped = [];
                let more = 0;

                return {
                        skip: (name, why) => {
                                if (skipped.length < SKIPPED_MAX)
                                        skipped.push({ name: String(name).slice(0, 200),
                                                       why: String(why).slice(0, 200) });
                                else
                                        more++;
                        },
                        text: (ok, why, saved) => JSON.stringify({
                                ok, why, version: main.version, saved, skipped, skipped_more: more }),
                };
        };

        const whyOf = (error) => {
                if (error instanceof Refusal)
                        return error.message;
                const message = isObject(error) && types.isNativeError(error) ? dataOf(error, 'message') : undefined;

                return typeof message === 'string' ? message : 'it cannot be saved';
        };

        /*
         * The variables of code: {name, lexical, read()}, sorted. What let, const and class declare is no property,
         * but has no getters either; it throws what was never initialised.
         */
        const variables = () => {
                const found = new Map();
                const builtin = new Set(copy(main.globalNames())), loaded = new Set(copy(main.loadedModules()));
                /* Names like url are node's modules, as getters until they are used or assigned to. */
                const isReplaced = (name) => {
                        const descriptor = getOwnPropertyDescriptor(main.global, name);

                        return main.isLazy(name) && !descriptor.get &&
                               !(loaded.has(name) && main.require(name) === descriptor.value);
                };

                for (const name of ownKeys(main.global))
                        if (typeof name === 'string' && (!builtin.has(name) || isReplaced(name)))
                                found.set(name, { name, lexical: false, read: () => {
                                        const { get, set, value } = getOwnPropertyDescriptor(main.global, name);

                                        return get || set ? refuse('a getter or setter cannot be saved') : value;
                                } });
                for (const name of copy(main.lexicalNames()))
                        found.set(name, { name, lexical: true, read: () => main.read(name) });
                return [...found.values()].sort((a, b) => a.name < b.name ? -1 : 1);
        };

        /* What code has changed in the environment that the process was given. */
        const environment = () => {
                const now = main.environment, changes = [];
                const before = new Map(main.readText('/proc/self/environ').split('\0').map((line) => {
                        const end = line.indexOf('=');

                        return [line.slice(0, end), line.slice(end + 1)];
                }));

                for (const name of ownKeys(now))
                        if (typeof name === 'string' && before.get(name) !== now[name])
                                changes.push([name, now[name]]);
                for (const name of before.keys())
                        if (name !== '' && now[name] === undefined)
                                changes.push([name, null]);
                return changes;
        };

        const save = (statePath, reportPath) => {
                const report = makeReport(), names = [];
                const { nodes, save: saveValue } = saver();

                for (const { name, read, lexical } of variables())
                        try {
                                names.push([name, lexical, saveValue(read())]);
                        } catch (error) {
                                report.skip(name, whyOf(error));
                        }
                for (const kind of new Set(copy(main.resources())))
                        if (kind !== 'PipeWrap' && kind !== 'TTYWrap')
                                report.skip(kind, 'timers, sockets, processes and the like are not saved');
                main.write(statePath, MAGIC, main.serialize(
                        [nodes, names, main.cwd(), environment()]));
                main.write(reportPath, report.text(true, null, names.length));
        };

        return { MAGIC, INTEGRITY, Refusal, copy, dataOf, findKnown, isObject, makeReport, refuse, save, variables,
                 whyOf };
}
