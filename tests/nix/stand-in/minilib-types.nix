# SPDX-License-Identifier: MIT
# Types of options: what a value must be, and how several definitions become one.
lib: modules:
let
  inherit (builtins)
    all attrNames concatMap concatStringsSep elem filter hasAttr head isAttrs isBool isFloat isFunction isInt isList
    isPath isString length listToAttrs match toJSON;
  inherit (lib) isDerivation optional nameValuePair unique last imap0;
  inherit (modules) mergeDefinitions evalModules show showOption;

  # All definitions must say the same.
  one = loc: values:
    if all (v: v == head values) values then head values
    else throw "The option `${showOption loc}' has conflicting definition values: ${concatStringsSep " and " (map show values)}";

  # Not even the same twice, as of functions and derivations that cannot be compared.
  single = loc: values:
    if length values == 1 then head values else throw "The option `${showOption loc}' is defined multiple times while it's expected to be unique.";

  mkOptionType = { name, description ? name, check ? _: true, merge ? one, ... }@type:
    { inherit name description check merge; } // type // { _type = "option-type"; };
  simple = name: description: check: mkOptionType { inherit name description check; };

  # The value of one element, as [ ] where its conditions leave nothing.
  element = loc: type: definitions:
    let merged = mergeDefinitions loc type definitions; in
    if merged.values == [ ] then [ ] else [ merged.value ];

  joined = separator: description: mkOptionType {
    name = "separatedString";
    inherit description;
    check = isString;
    merge = _: concatStringsSep separator;
  };

  isBetween = low: high: x: x >= low && x <= high;
  isPathLike = x: isPath x || isDerivation x || (isString x && match "/.*" x != null);

  types = {
    raw = mkOptionType { name = "raw"; description = "raw value"; merge = single; };
    bool = simple "bool" "boolean" isBool;
    int = simple "int" "signed integer" isInt;
    float = simple "float" "floating point number" isFloat;
    number = types.either types.int types.float // { description = "signed integer or floating point number"; };
    str = simple "str" "string" isString;
    singleLineStr = simple "singleLineStr" "(optionally newline-terminated) single-line string" (x: isString x && match "[^\n]*\n?" x != null);
    nonEmptyStr = simple "nonEmptyStr" "non-empty string" (x: isString x && match "[ \t\n]*" x == null);
    strMatching = pattern: simple "strMatching" "string matching the pattern ${pattern}" (x: isString x && match pattern x != null);
    path = simple "path" "absolute path" isPathLike;
    package = simple "package" "package" (x: isDerivation x || (isString x && lib.hasPrefix "${builtins.storeDir}/" x));
    lines = joined "\n" "strings concatenated with \"\\n\"";
    commas = joined "," "strings concatenated with \",\"";
    separatedString = separator: joined separator "strings concatenated with ${toJSON separator}";
    attrs = mkOptionType {
      name = "attrs";
      description = "attribute set";
      check = isAttrs;
      merge = _: lib.mergeAttrsList;
    };
    enum = values: simple "enum" "one of ${lib.concatMapStringsSep ", " show values}" (x: elem x values);
    ints = {
      between = low: high: simple "intBetween" "integer between ${toString low} and ${toString high} (both inclusive)" (x: isInt x && isBetween low high x);
      unsigned = simple "unsignedInt" "unsigned integer, meaning >=0" (x: isInt x && x >= 0);
      positive = simple "positiveInt" "positive integer, meaning >0" (x: isInt x && x > 0);
      u16 = types.ints.between 0 65535;
    };
    numbers = {
      between = low: high: simple "numberBetween" "integer or floating point number between ${toString low} and ${toString high} (both inclusive)" (x: types.number.check x && isBetween low high x);
      positive = simple "numberPositive" "positive integer or floating point number, meaning >0" (x: types.number.check x && x > 0);
      nonnegative = simple "numberNonnegative" "nonnegative integer or floating point number, meaning >=0" (x: types.number.check x && x >= 0);
    };
    port = types.ints.u16 // { description = "16 bit unsigned integer; between 0 and 65535 (both inclusive)"; };

    anything = mkOptionType {
      name = "anything";
      merge = loc: values:
        if all (v: isAttrs v && !isDerivation v) values then (types.attrsOf types.anything).merge loc values
        else if length values > 1 && all isList values then builtins.concatLists values
        else if all isFunction values then single loc values
        else one loc values;
    };

    nullOr = type: mkOptionType {
      name = "nullOr";
      description = "null or ${type.description}";
      check = x: x == null || type.check x;
      merge = loc: values:
        if all (v: v == null) values then null
        else if elem null values then throw "The option `${showOption loc}' is defined both null and not null."
        else type.merge loc values;
      emptyValue = _: null;
    };

    either = a: b: mkOptionType {
      name = "either";
      description = "${a.description} or ${b.description}";
      check = x: a.check x || b.check x;
      merge = loc: values: if all a.check values then a.merge loc values else if all b.check values then b.merge loc values else one loc values;
    };
    oneOf = list: builtins.foldl' types.either (head list) (builtins.tail list);

    coercedTo = from: convert: to:
      let coerce = x: if from.check x then convert x else x; in
      mkOptionType {
        name = "coercedTo";
        description = "${to.description} or ${from.description} convertible to it";
        check = x: to.check (coerce x);
        merge = loc: values: to.merge loc (map coerce values);
      };

    addCheck = type: check: type // { check = x: type.check x && check x; };
    unique = { message }: type: type // { merge = single; };

    listOf = type: mkOptionType {
      name = "listOf";
      description = "list of ${type.description}";
      check = isList;
      merge = loc: values:
        concatMap (x: x) (builtins.concatLists (imap0 (n: list: imap0 (i: x: element (loc ++ [ "[definition ${toString (n + 1)}-entry ${toString (i + 1)}]" ]) type [ x ]) list) values));
      emptyValue = _: [ ];
    };
    nonEmptyListOf = type: types.addCheck (types.listOf type) (list: list != [ ]) // { description = "non-empty list of ${type.description}"; };

    attrsOf = type: mkOptionType {
      name = "attrsOf";
      description = "attribute set of ${type.description}";
      check = x: isAttrs x && !isDerivation x;
      merge = loc: values:
        listToAttrs (concatMap
          (n: map (nameValuePair n) (element (loc ++ [ n ]) type (concatMap (v: optional (hasAttr n v) v.${n}) values)))
          (unique (concatMap attrNames values)));
      emptyValue = _: { };
    };
    lazyAttrsOf = types.attrsOf;

    functionTo = type: mkOptionType {
      name = "functionTo";
      description = "function that evaluates to a(n) ${type.description}";
      check = x: isFunction x || (isAttrs x && x ? __functor);
      merge = loc: functions: argument: (mergeDefinitions (loc ++ [ "<function body>" ]) type (map (f: f argument) functions)).value;
    };

    deferredModule = mkOptionType { name = "deferredModule"; description = "module"; merge = _: imports: { inherit imports; }; };

    submodule = module: types.submoduleWith { modules = lib.toList module; shorthandOnlyDefinesConfig = true; };
    submoduleWith = { modules, specialArgs ? { }, shorthandOnlyDefinesConfig ? false, description ? "submodule" }:
      let
        evaluate = loc: definitions: (evalModules {
          prefix = loc;
          specialArgs = { name = last loc; } // specialArgs;
          modules = modules ++ map (d: if isAttrs d && shorthandOnlyDefinesConfig then { config = d; } else d) definitions;
        }).config;
      in
      mkOptionType {
        name = "submodule";
        inherit description;
        check = x: isAttrs x || isFunction x || isPath x;
        merge = evaluate;
        emptyValue = loc: evaluate loc [ ];
      };
  };

in
types // { inherit mkOptionType; }
