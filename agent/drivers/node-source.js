/* SPDX-License-Identifier: MIT */
/*
 * What becomes of code before node.js runs it. This file is a function: called once, it gives prepare() and
 * evaluateAnyKind(). Nothing here has effects of its own.
 *
 * There is no parser to be had, so V8 is asked: whether a piece of text compiles tells what it is. Where a
 * pattern matches in a string, a comment, a template or a regular expression, and only there, a "#" after it
 * does no harm.
 */
() => {
        'use strict';

        const { RegExp } = globalThis;
        const { Script } = require('vm');
        const unbound = Function.prototype.bind.bind(Function.prototype.call);
        const regexpExec = unbound(RegExp.prototype.exec);
        const stringIndexOf = unbound(String.prototype.indexOf);
        const stringSlice = unbound(String.prototype.slice);

        const CLASHES_MAX = 20;
        /* Characters to compile in search of one thing: some 100 ms. What is left then stays as it is. */
        const COMPILED_MAX = 4000000;

        const matches = (pattern, text) => regexpExec(pattern, text) !== null;

        const compiles = (text) => {
                try {
                        return new Script(`async () => {${text}\n}`) !== null;
                } catch {
                        return false;
                }
        };

        const replaceCode = (text, pattern, replacement, unless = () => false) => {
                let found = regexpExec(pattern, text);

                if (found === null || !compiles(text))
                        return text;
                for (let left = COMPILED_MAX; found && left > 0; found = regexpExec(pattern, text)) {
                        const before = stringSlice(text, 0, found.index);
                        const after = stringSlice(text, pattern.lastIndex);
                        const marked = `${before}${found[0]}#${after}`;
                        const replaced = `${before}${replacement}${after}`;

                        left -= marked.length + replaced.length;
                        if (unless(found) || compiles(marked) || !compiles(replaced))
                                continue;
                        text = replaced;
                        pattern.lastIndex = found.index + replacement.length;
                }
                return text;
        };

        /* May take a comparison for an assignment, but misses only those by destructuring. */
        const assigns = (text, name) => {
                const before = '(?<![\\w$.]|const\\s+)';
                const after = '\\s*(?:(?:[-+*/%&|^]|\\*\\*|<<|>>>?|&&|\\|\\||\\?\\?)?=(?![=>])|\\+\\+|--)';

                return matches(new RegExp(`${before}${name}${after}|(?:\\+\\+|--)\\s*${name}\\b`), text);
        };

        /* import() does not work in code from the inspector: it becomes a call of the driver's. */
        const prepareImports = (text, importName) =>
                replaceCode(text, /(?<![\w$#]|(?<!\.\.)\.)import(?=\s*\()/g, importName);

        /* To V8 a const stays one: it becomes a let, unless the code assigns to it and has to fail. */
        const prepareConstants = (text) =>
                replaceCode(text, /(?<=^|\n|; *)const(?=\s+(\w*)|[[{])/g, 'let  ',
                            (found) => found[1] && assigns(text, found[1]));

        /* Braces that can be an object literal are one, as in node's REPL. */
        const prepareBraces = (text) =>
                matches(/^\s*\{/, text) && !matches(/;\s*$/, text) && compiles(`(${text}\n)`)
                        ? `(${text}\n)` : text;

        const prepare = (text, importName) =>
                prepareBraces(prepareConstants(prepareImports(text, importName)));

        /* The declaration that begins here, if one does: up to the brace that completes it. */
        const declarationAt = (text, start) => {
                let end = start, left = COMPILED_MAX;

                while (left > 0 && (end = stringIndexOf(text, '}', end) + 1) > 0) {
                        left -= end - start;
                        if (compiles(stringSlice(text, start, end)))
                                return stringSlice(text, start, end);
                }
                return '';
        };

        /*
         * Ways to write code whose declaration of a name clashes with an older: var and function are
         * properties of the global object, let and class are not. A variable takes the other keyword, the
         * others an assignment. The keyword may belong to another name: then the clash stays, and the way is
         * not taken.
         */
        const otherKinds = (text, name) => {
                const words =
                        /(?<![\w$.])(?:(let|const|var)|class|(?:async\s+)?function)\b(?=[\s*]*([\w$]*))/g;
                const ways = [];

                for (let found; (found = regexpExec(words, text)) !== null;) {
                        let declaration = found[1], instead = declaration === 'var' ? 'let' : 'var';

                        if (declaration === undefined && found[2] === name) {
                                declaration = declarationAt(text, found.index);
                                instead = `void (${name} = ${declaration});`;
                        }
                        if (declaration !== undefined)
                                ways[ways.length] = stringSlice(text, 0, found.index) + instead +
                                                    stringSlice(text, found.index + declaration.length);
                }
                return ways;
        };

        const clashingName = ({ refusal }) => {
                const text = refusal?.exception?.description ?? '';

                return regexpExec(/^SyntaxError: Identifier '(.+)' has already been declared/, text)?.[1];
        };

        /* The first way that V8 does not refuse, or only for a name that has not been seen to yet. */
        const evaluateOtherwise = (text, name, seen, evaluate) => {
                const ways = compiles(text) ? otherKinds(text, name) : [];

                for (let i = 0, left = COMPILED_MAX; i < ways.length && left > 0; i++) {
                        const outcome = evaluate(ways[i]);

                        left -= ways[i].length;
                        if (outcome.refusal === null || !seen[clashingName(outcome) ?? name])
                                return { text: ways[i], outcome };
                }
                return null;
        };

        /* When V8 refuses a declaration nothing has run: other ways can be tried, name after name. */
        const evaluateAnyKind = (text, evaluate) => {
                const seen = { __proto__: null };
                let outcome = evaluate(text);

                for (let i = 0, name; i < CLASHES_MAX && (name = clashingName(outcome)) !== undefined; i++) {
                        seen[name] = true;
                        const better = evaluateOtherwise(text, name, seen, evaluate);

                        if (better === null)
                                break;
                        ({ text, outcome } = better);
                }
                return outcome;
        };

        return { prepare, evaluateAnyKind };
}
