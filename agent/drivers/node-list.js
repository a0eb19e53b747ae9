/* SPDX-License-Identifier: MIT */
/*
 * List and show of the node driver: a function, called in the same realm as node-state.js with what that gives.
 * util.inspect() would run getters of tags and names; this shows properties only, and no more of them than fit.
 */
(main, state) => {
        'use strict';

        const { dataOf, isObject, variables } = state;
        const { types } = main;
        const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const getter = (prototype, name) => unbound(getOwnPropertyDescriptor(prototype, name).get);
        const viewPrototype = getPrototypeOf(Uint8Array.prototype);
        const viewName = getter(viewPrototype, Symbol.toStringTag);
        const viewLength = getter(viewPrototype, 'length');
        const viewBytes = getter(viewPrototype, 'byteLength');
        const bufferBytes = getter(ArrayBuffer.prototype, 'byteLength');
        const mapSize = getter(Map.prototype, 'size'), setSize = getter(Set.prototype, 'size');
        const mapEntries = unbound(Map.prototype.entries), setValues = unbound(Set.prototype.values);
        const dateTime = unbound(Date.prototype.getTime);
        const regexpSource = getter(RegExp.prototype, 'source');
        const regexpFlags = Object.entries({ d: 'hasIndices', g: 'global', i: 'ignoreCase', m: 'multiline',
                                             s: 'dotAll', u: 'unicode', y: 'sticky' })
                .map(([flag, name]) => [flag, getter(RegExp.prototype, name)]);
        const flagsOf = (regexp) => regexpFlags.filter(([, is]) => is(regexp)).map(([flag]) => flag).join('');
        const textOf = unbound(Function.prototype.toString);

        const LISTED_MAX = 500, LIST_ROOM = 200000;
        const SHORT = 200, LONG = 20000;

        const classNameOf = (object) => {
                for (let p = object, i = 0; p !== null && i < 20 && !types.isProxy(p); p = getPrototypeOf(p), i++) {
                        const name = dataOf(dataOf(p, 'constructor') ?? {}, 'name');

                        if (typeof name === 'string' && name !== '')
                                return name.slice(0, 60);
                }
                return getPrototypeOf(object) === null ? 'null' : 'object';
        };

        const typeOf = (value) => {
                if (!isObject(value))
                        return value === null ? 'null' : typeof value;
                if (types.isProxy(value))
                        return 'Proxy';
                if (typeof value === 'function')
                        return /^class\b/.test(textOf(value)) ? 'class' : 'function';
                return classNameOf(value);
        };

        /* Of what is known without counting all of it. */
        const sizeOf = (value) => {
                if (typeof value === 'string')
                        return value.length;
                if (!isObject(value) || types.isProxy(value))
                        return null;
                if (types.isTypedArray(value))
                        return viewBytes(value);
                return types.isArrayBuffer(value) ? bufferBytes(value) : null;
        };

        /* Appends to parts until there is no room; what comes then is left out and sets cut. */
        const writer = (room) => {
                const seen = [];
                let text = '', cut = false;
                const put = (part) => {
                        if (cut)
                                return false;
                        text += part.length <= room - text.length ? part : part.slice(0, room - text.length);
                        cut = text.length >= room;
                        return !cut;
                };

                const putString = (value) => put(JSON.stringify(value.slice(0, room)));

                const putKey = (key) => put(typeof key === 'symbol' ? `[${String(key)}]: `
                        : /^[A-Za-z_$][\w$]*$/.test(key) ? `${key}: ` : `${JSON.stringify(key.slice(0, room))}: `);

                const putProperty = (object, key, named) => {
                        const descriptor = getOwnPropertyDescriptor(object, key);

                        if (named)
                                putKey(key);
                        if (descriptor === undefined)
                                put('<empty>');
                        else if (descriptor.get || descriptor.set)
                                put('[Getter/Setter]');
                        else
                                putValue(descriptor.value);
                };

                const putList = (open, close, items) => {
                        let first = true;

                        put(open);
                        for (const item of items) {
                                if (!put(first ? ' ' : ', '))
                                        return;
                                first = false;
                                item();
                        }
                        put(first ? close : ` ${close}`);
                };

                const elements = function* (object, length) {
                        for (let i = 0; i < length; i++)
                                yield () => putProperty(object, String(i), false);
                };

                /* A class may have many, an array too: they are not asked for before the elements have room. */
                const properties = function* (object, skipElements) {
                        if (skipElements && cut)
                                return;
                        for (const key of ownKeys(object))
                                if (!(skipElements && (key === 'length' || /^\d+$/.test(String(key)))) &&
                                    getOwnPropertyDescriptor(object, key)?.enumerable)
                                        yield () => putProperty(object, key, true);
                };

                const both = function* (...lists) {
                        for (const list of lists)
                                yield* list;
                };

                const mapItems = function* (object) {
                        for (const entry of { [Symbol.iterator]: () => own(mapEntries(object)) })
                                yield () => {
                                        putValue(entry[0]);
                                        put(' => ');
                                        putValue(entry[1]);
                                };
                };

                const setItems = function* (object) {
                        for (const entry of { [Symbol.iterator]: () => own(setValues(object)) })
                                yield () => putValue(entry);
                };

                const putObject = (value) => {
                        const name = classNameOf(value), prefix = name === 'Object' ? '' : `${name} `;

                        if (Array.isArray(value)) {
                                const length = dataOf(value, 'length');

                                putList(name === 'Array' ? '[' : `${name}(${length}) [`, ']',
                                        both(elements(value, length), length > room ? [] : properties(value, true)));
                        } else if (types.isTypedArray(value))
                                putList(`${name === 'Buffer' ? name : viewName(value)}(${viewLength(value)}) [`, ']',
                                        elements(value, viewLength(value)));
                        else if (types.isMap(value))
                                putList(`${name}(${mapSize(value)}) {`, '}', both(mapItems(value), properties(value)));
                        else if (types.isSet(value))
                                putList(`${name}(${setSize(value)}) {`, '}', both(setItems(value), properties(value)));
                        else if (types.isDate(value)) {
                                const time = new Date(dateTime(value));

                                put(Number.isNaN(time.getTime()) ? 'Invalid Date' : time.toISOString());
                        } else if (types.isRegExp(value))
                                put(`/${regexpSource(value)}/${flagsOf(value)}`);
                        else if (types.isNativeError(value))
                                put(`[${name}: ${String(dataOf(value, 'message') ?? '')}]`);
                        else if (types.isAnyArrayBuffer(value))
                                put(`${name} { ${sizeOf(value)} bytes }`);
                        else
                                putList(`${prefix}{`, '}', properties(value));
                };

                const putValue = (value) => {
                        if (typeof value === 'string')
                                return putString(value);
                        if (typeof value === 'bigint')
                                return put(`${value}n`);
                        if (!isObject(value))
                                return put(Object.is(value, -0) ? '-0' : String(value));
                        if (types.isProxy(value))
                                return put('[Proxy]');
                        if (typeof value === 'function') {
                                const name = dataOf(value, 'name');

                                return put(`[${typeOf(value)} ${typeof name === 'string' ? name : ''}]`);
                        }
                        if (seen.includes(value))
                                return put('[Circular]');
                        if (seen.length > 8)
                                return put(`[${classNameOf(value)}]`);
                        seen.push(value);
                        putObject(value);
                        seen.pop();
                };

                return { putValue, put, result: () => ({ text: wellFormed(text), cut }) };
        };

        /* An iterator of the other realm, whose next() code may have changed, as one of this. */
        const iteratorNext = { map: unbound(getPrototypeOf(new Map().entries()).next),
                               set: unbound(getPrototypeOf(new Set().values()).next) };
        const own = (iterator) => ({ next: () => types.isMapIterator(iterator) ? iteratorNext.map(iterator)
                : iteratorNext.set(iterator) });

        /* JSON text must be valid UTF-8: a cut may have left half a character. */
        const LONELY = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
        const wellFormed = (text) => text.replace(LONELY, '\ufffd');

        const describe = ({ name, read }, room) => {
                const shown = wellFormed(name.slice(0, SHORT));
                let value;

                try {
                        value = read();
                } catch {
                        return { object: { name: shown, type: 'unknown', size: null,
                                           text: '[without a value, or a getter]' }, cut: false };
                }
                const out = writer(room);

                if (typeof value === 'function' && !types.isProxy(value) && room === LONG)
                        out.put(textOf(value));
                else
                        out.putValue(value);
                const { text, cut } = out.result();

                return { object: { name: shown, type: typeOf(value), size: sizeOf(value), text }, cut };
        };

        const list = (path) => {
                const all = variables(), shown = [];
                let room = LIST_ROOM;

                for (const variable of all) {
                        if (shown.length === LISTED_MAX || room < 0) {
                                shown.push({ more: all.length - shown.length });
                                break;
                        }
                        const { object } = describe(variable, SHORT);

                        shown.push(object);
                        room -= main.bytes(JSON.stringify(object));
                }
                main.write(path, JSON.stringify(shown));
        };

        const show = (path, name) => {
                const variable = variables().find((each) => each.name === name);

                if (variable === undefined)
                        return main.write(path, JSON.stringify({ error: 'there is no variable of that name' }));
                const { object, cut } = describe(variable, LONG);

                main.write(path, JSON.stringify({ ...object, truncated: cut }));
        };

        return { list, show };
}
