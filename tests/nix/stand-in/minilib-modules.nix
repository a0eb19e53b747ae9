# SPDX-License-Identifier: MIT
# The module system: options, definitions with conditions and priorities, imports. Errors name the option, in the words
# that NixOS uses.
lib:
let
  inherit (builtins)
    attrNames concatMap filter foldl' functionArgs genList hasAttr head intersectAttrs isAttrs isBool isFunction isInt
    isList isPath isString length listToAttrs mapAttrs match replaceStrings sort stringLength substring tail toJSON;
  inherit (lib) optional nameValuePair unique setAttrByPath recursiveUpdate;

  isType = type: x: isAttrs x && (x._type or null) == type;

  showName = n: if match "[a-zA-Z_][a-zA-Z0-9_'-]*" n != null || n == "*" || n == "<name>" then n else toJSON n;
  showOption = loc: lib.concatMapStringsSep "." showName loc;

  # For messages: what was given, in one short line.
  show = x:
    if isString x || isInt x || isBool x || x == null then toJSON x
    else if lib.isDerivation x then "<derivation ${x.name}>"
    else if isList x then "[ ${lib.concatMapStringsSep " " show x} ]"
    else if isAttrs x then "{ ${lib.concatMapStringsSep " " (n: "${showName n} = …;") (attrNames x)} }"
    else if isFunction x then "<function>"
    else toString x;

  # --- declarations

  mkOption =
    { type ? null, default ? null, defaultText ? null, example ? null, description ? null, apply ? null, internal ? null
    , visible ? null, readOnly ? null, relatedPackages ? null }@option: option // { _type = "option"; };

  mkEnableOption = what: mkOption {
    type = lib.types.bool;
    default = false;
    example = true;
    description = "Whether to enable ${what}.";
  };

  mkPackageOption = pkgs: name: { default ? name, nullable ? false, example ? null, pkgsText ? "pkgs", extraDescription ? "" }:
    mkOption {
      type = if nullable then lib.types.nullOr lib.types.package else lib.types.package;
      default = if default == null then null else lib.attrByPath (lib.toList default) (throw "mkPackageOption: no ${show default}") pkgs;
      defaultText = literalExpression "${pkgsText}.${lib.concatStringsSep "." (lib.toList default)}";
      description = "The ${lib.concatStringsSep "." (lib.toList name)} package to use. ${extraDescription}";
    };

  literalExpression = text: if isString text then { _type = "literalExpression"; inherit text; } else throw "literalExpression: not a string";
  literalMD = text: { _type = "literalMD"; inherit text; };

  # --- definitions

  mkIf = condition: content: { _type = "if"; inherit condition content; };
  mkMerge = contents: { _type = "merge"; inherit contents; };
  mkOverride = priority: content: { _type = "override"; inherit priority content; };
  mkOptionDefault = mkOverride 1500;
  mkDefault = mkOverride 1000;
  mkForce = mkOverride 50;
  mkOrder = priority: content: { _type = "order"; inherit priority content; };
  mkBefore = mkOrder 500;
  mkAfter = mkOrder 1500;

  # The values of a definition with what is wrapped around them; forces its conditions.
  discharge = d:
    if isType "if" d then (if d.condition then discharge d.content else [ ])
    else if isType "merge" d then concatMap discharge d.contents
    else if isType "override" d then map (x: x // { inherit (d) priority; }) (discharge d.content)
    else if isType "order" d then map (x: x // { order = d.priority; }) (discharge d.content)
    else [ { priority = 100; order = 1000; value = d; } ];

  # The same one level further in, without forcing a condition: `mkIf c { a = 1; }` is `{ a = mkIf c 1; }`.
  push = d:
    if isType "if" d then map (mapAttrs (_: mkIf d.condition)) (push d.content)
    else if isType "merge" d then concatMap push d.contents
    else if isType "override" d then map (mapAttrs (_: mkOverride d.priority)) (push d.content)
    else if isType "order" d then map (mapAttrs (_: mkOrder d.priority)) (push d.content)
    else [ d ];

  # { defined; values; value; priority; } of all definitions of one option (or of one element of it).
  mergeDefinitions = loc: type: definitions:
    let
      all = concatMap discharge definitions;
      priority = foldl' (best: d: if d.priority < best then d.priority else best) 9999 all;
      kept = sort (a: b: a.order < b.order) (filter (d: d.priority == priority) all);
      values = map (d: d.value) kept;
      wrong = filter (v: !type.check v) values;
    in
    {
      inherit priority values;
      defined = kept != [ ] || type ? emptyValue;
      value =
        if wrong != [ ] then
          throw "A definition for option `${showOption loc}' is not of type `${type.description}'. Definition values: ${show (head wrong)}"
        else if kept != [ ] then type.merge loc values
        else if type ? emptyValue then type.emptyValue loc
        else throw "The option `${showOption loc}' was accessed but has no value defined. Try setting the option.";
    };

  # --- modules

  # A module's parts, whichever of the two forms it is written in.
  normalize = module:
    let known = [ "imports" "options" "config" "freeformType" "_file" "_class" "key" "meta" "disabledModules" ]; in
    if module ? options || module ? config then
      let strange = filter (n: !builtins.elem n known) (attrNames module); in
      if strange != [ ] then
        throw "Module has an unsupported attribute `${head strange}'. This is caused by introducing a top-level `config' or `options' attribute."
      else { options = module.options or { }; config = module.config or { }; freeformType = module.freeformType or null; }
    else {
      options = { };
      config = removeAttrs module [ "imports" "freeformType" "_file" "_class" "key" "meta" "disabledModules" ];
      freeformType = module.freeformType or null;
    };

  load = args: module:
    let
      content = if isPath module || isString module then import module else module;
      wanted = functionArgs content;
      absent = filter (n: !wanted.${n} && !hasAttr n args) (attrNames wanted);
      value =
        if !isFunction content then content
        else if absent != [ ] then throw "a module wants the argument `${head absent}', which it is not given"
        else content (if wanted == { } then args else intersectAttrs wanted args);
    in
    if !isAttrs value then throw "a module is neither a set nor a function that gives one: ${show value}"
    else concatMap (load args) (value.imports or [ ]) ++ [ (normalize value) ];

  # One tree of all declarations.
  mergeDeclarations = loc: trees:
    listToAttrs (map
      (n:
        let here = concatMap (t: optional (hasAttr n t) t.${n}) trees; path = loc ++ [ n ]; in
        nameValuePair n (
          if !isType "option" (head here) then mergeDeclarations path here
          else if length here > 1 then throw "The option `${showOption path}' is already declared."
          else head here))
      (unique (concatMap attrNames trees)));

  evalOption = loc: option: definitions:
    let
      type = option.type or lib.types.anything;
      merged = mergeDefinitions loc type (definitions ++ optional (option ? default) (mkOptionDefault option.default));
      set = length (concatMap discharge definitions);
      value =
        if (option.readOnly or false) && set > (if option ? default then 0 else 1) then
          throw "The option `${showOption loc}' is read-only, but it's set multiple times."
        else (option.apply or (x: x)) merged.value;
    in
    option // { inherit loc type value; isDefined = merged.defined; highestPrio = merged.priority; definitions = merged.values; };

  # { options; config; unmatched; }: the tree of options, its values, and the definitions that no option is for.
  evalTree = loc: tree: definitions:
    let
      pushed = map
        (d: if isAttrs d then d else throw "The option `${showOption loc}' is a set of options and was given ${show d}")
        (concatMap push definitions);
      at = n: concatMap (d: optional (hasAttr n d) d.${n}) pushed;
      parts = mapAttrs
        (n: o:
          if isType "option" o then let e = evalOption (loc ++ [ n ]) o (at n); in { options = e; config = e.value; unmatched = [ ]; }
          else evalTree (loc ++ [ n ]) o (at n))
        tree;
      strange = filter (n: !hasAttr n tree) (unique (concatMap attrNames pushed));
    in
    {
      options = mapAttrs (_: p: p.options) parts;
      config = mapAttrs (_: p: p.config) parts;
      unmatched = map (n: { path = loc ++ [ n ]; definitions = at n; }) strange
        ++ concatMap (n: parts.${n}.unmatched) (attrNames parts);
    };

  evalModules = { modules, specialArgs ? { }, prefix ? [ ] }:
    let
      # _module.args is known of modules that are plain sets only: no option needs to be evaluated to see it.
      moduleArgs = foldl' (all: m: all // ((m._module or { }).args or { })) { } (filter isAttrs modules);
      args = moduleArgs // { inherit lib config; inherit (result) options; } // specialArgs;
      loaded = concatMap (load args) modules;
      freeformType = foldl' (found: m: if m.freeformType != null then m.freeformType else found) null loaded;
      declared = mergeDeclarations prefix (map (m: m.options) loaded);
      result = evalTree prefix declared (map (m: removeAttrs m.config [ "_module" ]) loaded);

      depth = length prefix;
      relative = path: genList (i: builtins.elemAt path (i + depth)) (length path - depth);
      free = (mergeDefinitions prefix freeformType
        (concatMap (u: map (setAttrByPath (relative u.path)) u.definitions) result.unmatched)).value;
      config = if freeformType == null || result.unmatched == [ ] then result.config else recursiveUpdate free result.config;
      checked =
        if freeformType != null || result.unmatched == [ ] then config
        else throw "The option `${showOption (head result.unmatched).path}' does not exist.";
    in
    { config = checked; inherit (result) options; };
in
{
  inherit
    evalModules isType literalExpression literalMD mergeDefinitions mkAfter mkBefore mkDefault mkEnableOption mkForce mkIf
    mkMerge mkOption mkOptionDefault mkOrder mkOverride mkPackageOption show showOption;
}
