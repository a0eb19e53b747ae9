# SPDX-License-Identifier: MIT
#
# fromToml FILE: the options of services.nix-sandbox that a TOML file says, for those who want one file and no Nix:
#
#   [defaults]
#   timeout_seconds = 60
#   [session]
#   idle_timeout_seconds = 3600
#   [environments.data]
#   preset = "python"
#   memory_mb = 2048
#
# Keys are checked here, because only here their place is known; values by the types of the options, as everybody's.
{
  lib,
  # Of the packages that flakes are asked for.
  system,
  presets ? [ "default" "node" "python" "shell" ],
}:

file:

let
  inherit (builtins) attrNames concatStringsSep isAttrs isString toJSON;
  keys = import ./configuration-keys.nix { inherit lib; };

  fail = place: text: throw "${baseNameOf (toString file)}: ${place}: ${text}";

  # { key = value; } to { option = value; }, by a table or by a set of functions from a value to options.
  table =
    place: convert: value:
    if !isAttrs value then fail place "must be a table"
    else
      lib.concatMapAttrs (
        key: v:
        if convert ? ${key} then convert.${key} v
        else fail place "there is no key ${toJSON key}; there are ${concatStringsSep ", " (attrNames convert)}"
      ) value;

  byTable = rows: lib.mapAttrs' (option: row: lib.nameValuePair row.key (value: { ${option} = value; })) rows;

  # "github:somebody/environments#name", looked up as the command nix does; without a name it is the default package.
  flakePackage =
    place: reference:
    let
      parts = if isString reference then lib.splitString "#" reference else fail place "flake must be a string";
      name = if builtins.length parts > 1 then lib.last parts else "default";
      flake = builtins.getFlake (builtins.head parts);
      path = lib.splitString "." name;
      below = output: otherwise: lib.attrByPath path otherwise (flake.${output}.${system} or { });
    in
    below "packages" (
      below "legacyPackages" (fail place "flake ${toJSON reference} has no package ${toJSON name} for ${system}")
    );

  environment =
    name:
    let
      place = "[environments.${name}]";
    in
    table place (
      byTable keys.environment
      // {
        description = description: { inherit description; };
        preset =
          preset:
          if builtins.elem preset presets then { inherit preset; }
          else fail place "there is no preset ${toJSON preset}; there are ${concatStringsSep ", " presets}";
        interpreter = interpreter: { interpreters = [ interpreter ]; };
        flake =
          reference:
          let
            package = flakePackage place reference;
          in
          if package ? environment then { artifact = package; } else { packages = [ package ]; };
      }
    );

  sections = {
    defaults = value: { limits.defaults = table "[defaults]" (byTable keys.defaults) value; };
    max = value: { limits.max = table "[max]" (byTable keys.limits) value; };
    session = value: { session = table "[session]" (byTable keys.session) value; };
    network = value: {
      network = table "[network]" {
        sets = sets: { inherit sets; };
        limits = limits: { limits = table "[network.limits]" (byTable keys.networkLimits) limits; };
      } value;
    };
    environments = value: { environments = lib.mapAttrs environment value; };
  };

  # Not concatMapAttrs: [defaults] and [max] are both below limits.
  read = value: lib.mapAttrsToList (
    key: v:
    if !sections ? ${key} then fail "top level" "there is no section ${toJSON key}; there are ${concatStringsSep ", " (attrNames sections)}"
    else if !isAttrs v then fail "[${key}]" "must be a table"
    else sections.${key} v
  ) value;
in
builtins.foldl' lib.recursiveUpdate { } (read (builtins.fromTOML (builtins.readFile file)))
