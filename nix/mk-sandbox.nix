# SPDX-License-Identifier: MIT
#
# mkSandbox makes an environment for sandboxd: a derivation that says in environment.json what the environment is, and
# in store-paths what a jail with it sees. sandboxd takes it from a directory of environment_dirs, where a link to it is
# enough, or from its configuration.
#
# Everything is known when the derivation is evaluated but the closure, which is known when it is built; so what is
# wrong with an argument is said at once, and nothing has to be built to evaluate a configuration.
{
  lib,
  bash,
  buildEnv,
  closureInfo,
  coreutils,
  nodejs,
  python3,
  runCommandLocal,
  writeShellScriptBin,
}:

{
  # Under which it is asked for: letters, digits, "-" and "_".
  name,
  # "python", "bash", "node"; the first is the default. One can be given as interpreter, too.
  interpreters ? if interpreter == null then [ ] else [ interpreter ],
  interpreter ? null,
  # What is in PATH besides the interpreters, sh and coreutils.
  packages ? [ ],
  # As for python3.withPackages; dill, which keeps sessions, is always there.
  pythonPackages ? _: [ ],
  # What node finds with require().
  nodePackages ? [ ],
  description ? "",
  # Where they are null, the daemon's configuration decides.
  timeoutSeconds ? null,
  memoryMb ? null,
  cpus ? null,
  diskMb ? null,
  # The most that a session can have of its project: "none", "read-only", "read-write".
  project ? null,
  # What a session may reach: rules such as "*.example.org" and "git.example:22", and "@NAME" for a set of the daemon's
  # configuration. null: it has no network.
  network ? null,
  # For nix/environments only: what a daemon has under this name anyway. Sessions are then made with "default", so that
  # the presets share them.
  preset ? false,
}:

let
  inherit (builtins) elem filter head isBool isFloat isInt isList isString match stringLength typeOf;

  # The bounds of daemon/limits.h.
  secondsMin = 0.01;
  secondsMax = 31536000;
  memoryMbMin = 32;
  memoryMbMax = 16777216;
  cpusMin = 0.01;
  cpusMax = 4096;

  shown =
    value:
    if isString value || isInt value || isFloat value || isBool value then builtins.toJSON value
    else if value == [ ] then "an empty list"
    else "a ${typeOf value}";
  check =
    argument: value: good: must:
    if good then value else throw "mkSandbox: ${argument} must be ${must}, not ${shown value}";

  isNumber = value: isInt value || isFloat value;
  between =
    argument: value: least: most: kind: isKind:
    check argument value (value == null || (isKind value && value >= least && value <= most))
      "${kind} between ${builtins.toJSON least} and ${builtins.toJSON most}";
  oneOf =
    argument: value: values:
    check argument value (elem value values) "one of ${lib.concatMapStringsSep ", " builtins.toJSON values}";
  packageList =
    argument: value:
    let
      strangers = filter (element: !lib.isDerivation element) value;
    in
    if !isList value then check argument value false "a list of packages"
    else if strangers != [ ] then check "each of ${argument}" (head strangers) false "a package"
    else value;

  ruleList =
    value:
    if !isList value then check "network" value false "a list of texts, or null"
    else map (rule: check "each of network" rule (isString rule && rule != "") "a rule, such as \"*.example.org\"") value;

  has = interpreter: elem interpreter checked.interpreters;
  forInterpreter =
    argument: interpreter: value:
    if value == [ ] || has interpreter then value
    else throw "mkSandbox: ${argument} must be empty, for interpreters has no ${builtins.toJSON interpreter}";

  checked = {
    name = check "name" name (isString name && match "[A-Za-z0-9][A-Za-z0-9_-]{0,63}" name != null)
      "1 to 64 letters, digits, \"-\" and \"_\" that begin with a letter or digit";
    interpreters =
      if interpreter != null && interpreters != [ interpreter ] then
        throw "mkSandbox: interpreter and interpreters exclude each other"
      else if !isList interpreters || interpreters == [ ] then
        check "interpreters" interpreters false "a list of one interpreter or more"
      else if lib.unique interpreters != interpreters then
        throw "mkSandbox: interpreters must name each one once"
      else map (i: oneOf "each of interpreters" i [ "python" "bash" "node" ]) interpreters;
    packages = packageList "packages" packages;
    pythonPackages = forInterpreter "pythonPackages" "python" (
      if lib.isFunction pythonPackages then packageList "what pythonPackages returns" (pythonPackages python3.pkgs)
      else check "pythonPackages" pythonPackages false "a function from python3.pkgs to a list of packages"
    );
    nodePackages = forInterpreter "nodePackages" "node" (packageList "nodePackages" nodePackages);
  };

  # What environment.json says but for where things are; the names are those of the daemon's configuration.
  environment = lib.filterAttrs (_: value: value != null) {
    version = 1;
    inherit (checked) name interpreters;
    description =
      let text = check "description" description (isString description && stringLength description <= 512) "a text of at most 512 bytes";
      in if text == "" then null else text;
    preset =
      if check "preset" preset (isBool preset && (preset -> network == null)) "true or false, and false with a network" then true
      else null;
    timeout_seconds = between "timeoutSeconds" timeoutSeconds secondsMin secondsMax "a number" isNumber;
    memory_mb = between "memoryMb" memoryMb memoryMbMin memoryMbMax "a whole number" isInt;
    cpus = between "cpus" cpus cpusMin cpusMax "a number" isNumber;
    disk_mb = between "diskMb" diskMb 1 memoryMbMax "a whole number" isInt;
    network = if network == null then null else ruleList network;
    project = if project == null then null else oneOf "project" project [ "none" "read-only" "read-write" ];
  };

  # NODE_PATH is looked at only by node, so it is set there and not for all that runs in a jail.
  nodeModules = buildEnv {
    name = "sandbox-node-modules-${checked.name}";
    paths = checked.nodePackages;
    pathsToLink = [ "/lib/node_modules" ];
  };
  nodeWithPackages = writeShellScriptBin "node" ''
    export NODE_PATH=${nodeModules}/lib/node_modules
    exec ${nodejs}/bin/node "$@"
  '';

  # Packages for an interpreter that is not there are refused when they are looked at.
  python =
    if has "python" then [ (python3.withPackages (ps: [ ps.dill ] ++ checked.pythonPackages)) ]
    else checked.pythonPackages;
  node =
    if !has "node" then checked.nodePackages
    else if checked.nodePackages == [ ] then [ nodejs ]
    else [ (lib.hiPrio nodeWithPackages) nodejs ];

  # All of each package is linked, not its programs only: what nothing refers to is not in the closure.
  root = buildEnv {
    name = "sandbox-env-${checked.name}";
    paths = lib.unique (python ++ node ++ [ bash coreutils ] ++ checked.packages);
  };

  artifact = runCommandLocal "sandbox-environment-${checked.name}" {
    environmentText = builtins.toJSON (environment // { root = "${root}"; closure = "store-paths"; }) + "\n";
    passAsFile = [ "environmentText" ];
    passthru = {
      inherit root environment;
      inherit (checked) interpreters packages;
      # What it was made of, for what builds on it.
      inherit pythonPackages nodePackages;
      closure = "${artifact}/store-paths";
    };
    meta = {
      description = if description == "" then "Environment ${checked.name} for nix-sandbox" else description;
      platforms = lib.platforms.linux;
    };
  } ''
    mkdir $out
    cp "$environmentTextPath" $out/environment.json
    cp ${closureInfo { rootPaths = [ root ]; }}/store-paths $out/store-paths
  '';
in
artifact
