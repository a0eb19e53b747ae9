/* SPDX-License-Identifier: MIT */
/*
 * What turns of node give back besides text. This file is a function: called once, it makes the global `sandbox`,
 * and gives before(). Values collect here and go out with the turn's report, whole: whether they are too large is
 * the agent's to say.
 */
() => {
        'use strict';

        const { ArrayBuffer, Buffer, Error, JSON, TypeError, URL } = globalThis;
        const { readFileSync } = require('fs');

        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const arrayFilter = unbound(Array.prototype.filter);
        const bufferCompare = Buffer.compare;
        const bufferConcat = Buffer.concat;
        const bufferFrom = Buffer.from;
        const bufferIndexOf = unbound(Buffer.prototype.indexOf);
        const bufferSubarray = unbound(Buffer.prototype.subarray);
        const { isView } = ArrayBuffer;
        const { stringify } = JSON;

        const SVG_LOOK = 1024;
        const MAGICS = [
                ['image/png', bufferFrom([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])],
                ['image/jpeg', bufferFrom([0xff, 0xd8, 0xff])],
        ];

        let values = [];                        /* { kind, data } */

        const give = (kind, data) => {
                values[values.length] = { __proto__: null, kind, data };
        };

        const kindOf = (data) => {
                for (let i = 0; i < MAGICS.length; i++)
                        if (bufferCompare(bufferSubarray(data, 0, MAGICS[i][1].length), MAGICS[i][1]) === 0)
                                return MAGICS[i][0];
                return bufferIndexOf(bufferSubarray(data, 0, SVG_LOOK), '<svg') >= 0 ? 'image/svg+xml' : null;
        };

        const bytesOf = (picture) => {
                if (typeof picture === 'string' || picture instanceof URL)
                        return readFileSync(picture);
                if (isView(picture))
                        return bufferFrom(bufferFrom(picture.buffer, picture.byteOffset, picture.byteLength));
                if (picture instanceof ArrayBuffer)
                        return bufferFrom(bufferFrom(picture));
                throw new TypeError('sandbox.image() takes PNG, JPEG or SVG as a Buffer or the path of a file');
        };

        /* Methods, for they have no prototype and cannot be called with new. */
        const sandbox = Object.freeze({
                result(value) {
                        const text = stringify(value);

                        if (text === undefined)
                                throw new TypeError('sandbox.result() takes what JSON has: null, booleans, numbers, ' +
                                                    'strings, arrays and objects');
                        values = arrayFilter(values, ({ kind }) => kind !== 'result');
                        give('result', bufferFrom(text));
                },
                image(picture) {
                        const data = bytesOf(picture);
                        const kind = kindOf(data);

                        if (kind === null)
                                throw new Error('sandbox.image() takes PNG, JPEG or SVG');
                        give(kind, data);
                },
        });

        Object.defineProperty(globalThis, 'sandbox', { value: sandbox, writable: true, configurable: true });

        /* All that the turn has given, as the agent reads it, and then the report. */
        const before = (token, report) => {
                const pieces = [];

                if (values.length === 0)
                        return report;
                for (let i = 0; i < values.length; i++) {
                        const { kind, data } = values[i];

                        pieces[2 * i] = bufferFrom(`value ${token} ${kind} ${data.length}\n`);
                        pieces[2 * i + 1] = data;
                }
                pieces[pieces.length] = bufferFrom(report);
                values = [];
                return bufferConcat(pieces);
        };

        return { before };
}
