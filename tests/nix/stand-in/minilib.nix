# SPDX-License-Identifier: MIT
# A small part of nixpkgs' `lib`, with the same names and the same meaning, written for our tests only: nothing of
# nixpkgs is needed to evaluate our files. A function that is not here does not exist, so that a file which uses more
# than this fails instead of meaning something else.
let
  inherit (builtins)
    all any attrNames concatLists concatMap concatStringsSep elem elemAt filter foldl' functionArgs genList getAttr
    hasAttr head intersectAttrs isAttrs isBool isFloat isFunction isInt isList isPath isString length listToAttrs
    mapAttrs match replaceStrings split stringLength substring tail toJSON toString;

  lib = {
    inherit (builtins)
      add all any attrNames attrValues compareVersions concatLists concatMap concatStringsSep elem elemAt filter foldl'
      fromJSON functionArgs genList getAttr groupBy hasAttr head intersectAttrs isAttrs isBool isFloat isFunction isInt
      isList isPath isString length listToAttrs mapAttrs match partition pathExists readFile replaceStrings seq deepSeq
      sort split splitVersion stringLength substring tail toJSON trace tryEval;
    inherit types;
    inherit (types) mkOptionType;
    inherit (modules)
      evalModules isType literalExpression literalMD mkAfter mkBefore mkDefault mkEnableOption mkForce mkIf mkMerge
      mkOption mkOptionDefault mkOrder mkOverride mkPackageOption showOption;

    # --- functions
    id = x: x;
    const = x: _: x;
    flip = f: a: b: f b a;
    pipe = foldl' (x: f: f x);
    fix = f: let x = f x; in x;
    extends = overlay: f: final: let prev = f final; in prev // overlay final prev;
    composeManyExtensions = foldl' (a: b: final: prev: let first = a final prev; in first // b final (prev // first)) (_: _: { });
    setFunctionArgs = f: args: { __functor = _: f; __functionArgs = args; };

    # --- messages
    assertMsg = holds: message: holds || throw message;
    throwIf = condition: message: if condition then throw message else x: x;
    throwIfNot = condition: lib.throwIf (!condition);
    warn = message: builtins.trace "evaluation warning: ${message}";
    warnIf = condition: message: if condition then lib.warn message else x: x;
    importJSON = file: builtins.fromJSON (builtins.readFile file);
    importTOML = file: builtins.fromTOML (builtins.readFile file);

    # --- lists
    singleton = x: [ x ];
    optional = condition: x: if condition then [ x ] else [ ];
    optionals = condition: list: if condition then list else [ ];
    toList = x: if isList x then x else [ x ];
    flatten = x: if isList x then concatMap lib.flatten x else [ x ];
    hiPrio = package: package // { meta = package.meta or { } // { priority = -10; }; };
    unique = foldl' (seen: x: if elem x seen then seen else seen ++ [ x ]) [ ];
    subtractLists = without: filter (x: !elem x without);
    intersectLists = a: filter (x: elem x a);
    last = list: elemAt list (length list - 1);
    init = list: genList (elemAt list) (length list - 1);
    take = n: list: genList (elemAt list) (if n < length list then n else length list);
    drop = n: list: genList (i: elemAt list (i + n)) (if n < length list then length list - n else 0);
    range = first: last: genList (i: first + i) (if last < first then 0 else last - first + 1);
    imap0 = f: list: genList (i: f i (elemAt list i)) (length list);
    findFirst = holds: default: list: let found = filter holds list; in if found == [ ] then default else head found;
    count = holds: list: length (filter holds list);
    allUnique = list: length (lib.unique list) == length list;

    # --- attribute sets
    nameValuePair = name: value: { inherit name value; };
    genAttrs = names: f: listToAttrs (map (n: lib.nameValuePair n (f n)) names);
    mapAttrs' = f: set: listToAttrs (map (n: f n set.${n}) (attrNames set));
    mapAttrsToList = f: set: map (n: f n set.${n}) (attrNames set);
    attrsToList = lib.mapAttrsToList lib.nameValuePair;
    filterAttrs = keep: set: listToAttrs (concatMap (n: lib.optional (keep n set.${n}) (lib.nameValuePair n set.${n})) (attrNames set));
    optionalAttrs = condition: set: if condition then set else { };
    concatMapAttrs = f: set: foldl' (a: b: a // b) { } (lib.mapAttrsToList f set);
    mergeAttrsList = foldl' (a: b: a // b) { };
    getAttrs = names: set: lib.genAttrs names (n: set.${n});
    attrByPath = path: default: set:
      if path == [ ] then set
      else if isAttrs set && hasAttr (head path) set then lib.attrByPath (tail path) default set.${head path}
      else default;
    setAttrByPath = path: value: if path == [ ] then value else { ${head path} = lib.setAttrByPath (tail path) value; };
    hasAttrByPath = path: set: path == [ ] || (isAttrs set && hasAttr (head path) set && lib.hasAttrByPath (tail path) set.${head path});
    recursiveUpdate = a: b:
      a // mapAttrs (n: v: if hasAttr n a && isAttrs a.${n} && isAttrs v && !lib.isDerivation v then lib.recursiveUpdate a.${n} v else v) b;
    recurseIntoAttrs = set: set // { recurseForDerivations = true; };

    # --- strings
    optionalString = condition: text: if condition then text else "";
    concatStrings = concatStringsSep "";
    concatMapStrings = f: list: concatStringsSep "" (map f list);
    concatMapStringsSep = separator: f: list: concatStringsSep separator (map f list);
    concatMapAttrsStringSep = separator: f: set: concatStringsSep separator (lib.mapAttrsToList f set);
    concatLines = lib.concatMapStrings (line: line + "\n");
    hasPrefix = prefix: text: substring 0 (stringLength prefix) text == prefix;
    hasSuffix = suffix: text:
      let n = stringLength text - stringLength suffix; in n >= 0 && substring n (-1) text == suffix;
    hasInfix = infix: text: length (split (lib.escapeRegex infix) text) > 1;
    removePrefix = prefix: text: if lib.hasPrefix prefix text then substring (stringLength prefix) (-1) text else text;
    removeSuffix = suffix: text:
      if lib.hasSuffix suffix text then substring 0 (stringLength text - stringLength suffix) text else text;
    splitString = separator: text: filter isString (split (lib.escapeRegex separator) text);
    trim = text: let found = match "[ \t\r\n]*(.*[^ \t\r\n])[ \t\r\n]*" text; in if found == null then "" else head found;
    escape = characters: replaceStrings characters (map (c: "\\" + c) characters);
    escapeRegex = lib.escape [ "\\" "^" "$" "." "|" "?" "*" "+" "(" ")" "[" "{" "}" ];
    escapeShellArg = x:
      let text = toString x; in
      if match "[[:alnum:],._+:@%/-]+" text != null then text else "'${replaceStrings [ "'" ] [ "'\\''" ] text}'";
    escapeShellArgs = lib.concatMapStringsSep " " lib.escapeShellArg;
    boolToString = b: if b then "true" else "false";
    versions.major = version: head (builtins.splitVersion version);
    versionAtLeast = a: b: builtins.compareVersions a b >= 0;
    versionOlder = a: b: builtins.compareVersions a b < 0;
    fileContents = file: lib.removeSuffix "\n" (builtins.readFile file);

    # --- derivations
    isDerivation = x: isAttrs x && (x.type or null) == "derivation";
    getOutput = output: p: if p.outputSpecified or false then p else p.${output} or p.out or p;
    getBin = lib.getOutput "bin";
    getLib = lib.getOutput "lib";
    getDev = lib.getOutput "dev";
    getName = p: p.pname or (builtins.parseDrvName p.name).name;
    getVersion = p: p.version or (builtins.parseDrvName p.name).version;
    getExe = p: lib.getExe' p (p.meta.mainProgram or (throw "getExe: ${lib.getName p} has no meta.mainProgram"));
    getExe' = p: program: "${lib.getBin p}/bin/${program}";
    makeBinPath = lib.concatMapStringsSep ":" (p: "${lib.getBin p}/bin");
    makeOverridable = f: args:
      let result = f args; in
      if isAttrs result then
        result // { override = changes: lib.makeOverridable f (args // (if isFunction changes then changes args else changes)); }
      else result;
    # Arguments that are named like an attribute of the scope are filled from it, whether they have a default or not.
    callPackageWith = scope: f: changes:
      let
        function = if isFunction f then f else import f;
        wanted = lib.functionArgs' function;
        args = intersectAttrs wanted scope // changes;
        missing = filter (n: !wanted.${n} && !hasAttr n args) (attrNames wanted);
      in
      if missing == [ ] then lib.makeOverridable function args
      else throw "callPackage: the stand-in for nixpkgs has no `${head missing}', which ${toString f} wants";
    functionArgs' = f: f.__functionArgs or (functionArgs f);
    customisation = { inherit (lib) callPackageWith makeOverridable; };

    # --- sources
    cleanSource = source: builtins.path { path = source; name = "source"; filter = path: _: baseNameOf path != ".git"; };
    inherit fileset;

    # --- meta
    licenses = lib.genAttrs [ "mit" "asl20" "bsd3" "gpl2Plus" "gpl3Plus" "lgpl21Plus" "isc" ] (n: { shortName = n; });
    platforms = { linux = [ "x86_64-linux" "aarch64-linux" ]; all = lib.platforms.linux; };
    maintainers = { };
    sourceTypes = { };
    trivial = { inherit (lib) id const flip pipe warn; };
  };

  # A set of files is a function that tells for an absolute path and its type whether it is in the set, and the paths
  # that all of it is at or below.
  fileset =
    let
      isSet = x: isAttrs x && (x._type or null) == "fileset";
      make = roots: has: { _type = "fileset"; inherit roots has; };
      within = path: root: path == root || lib.hasPrefix "${root}/" path;
      coerce = x:
        if isSet x then x
        else if !isPath x then throw "lib.fileset: ${builtins.typeOf x} is neither a path nor a file set"
        else if !builtins.pathExists x then throw "lib.fileset: ${toString x} does not exist"
        else make [ (toString x) ] (path: _: within path (toString x));
      # Nix asks for a directory before it asks for what is in it: one is kept where it has something of the set.
      keeps = set: path: type:
        if type != "directory" then set.has path type
        else any (root: within path root || within root path) set.roots
          && (let entries = builtins.readDir path; in any (n: keeps set "${path}/${n}" entries.${n}) (attrNames entries));
    in
    {
      unions = sets:
        let coerced = map coerce sets; in
        make (concatMap (s: s.roots) coerced) (path: type: any (s: s.has path type) coerced);
      union = a: b: fileset.unions [ a b ];
      intersection = a: b: let x = coerce a; y = coerce b; in make x.roots (path: type: x.has path type && y.has path type);
      difference = a: b: let x = coerce a; y = coerce b; in make x.roots (path: type: x.has path type && !y.has path type);
      maybeMissing = path: if builtins.pathExists path then coerce path else make [ ] (_: _: false);
      fileFilter = keep: directory:
        let all = coerce directory; in
        make all.roots (path: type: all.has path type && keep {
          inherit type;
          name = baseNameOf path;
          hasExt = extension: lib.hasSuffix ".${extension}" path;
        });
      toSource = { root, fileset }:
        builtins.path { path = root; name = "source"; filter = keeps (coerce fileset); };
    };

  modules = import ./minilib-modules.nix lib;
  types = import ./minilib-types.nix lib modules;
in
lib
