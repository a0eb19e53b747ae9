# SPDX-License-Identifier: MIT
# The options of NixOS that our module defines or reads, with the types that they have there: what it says by another
# name or of another type is an error here, too. Who adds an option here has seen it in NixOS.
{ lib, config, ... }:
let
  inherit (lib) mkOption types;
  option = type: default: mkOption { inherit type default; };

  # A line of a unit, or one line for each element.
  value = types.oneOf [ types.bool types.int types.str (types.listOf types.str) ];
  unitName = types.strMatching "[a-zA-Z0-9@%:_.\\-]+[.](service|socket|device|mount|automount|swap|target|path|timer|scope|slice)";
  unit = options: types.attrsOf (types.submodule {
    options = {
      wantedBy = option (types.listOf unitName) [ ];
      unitConfig = option (types.attrsOf value) { };
      restartTriggers = option (types.listOf types.package) [ ];
    } // options;
  });
in
{
  options = {
    assertions = option (types.listOf (types.submodule {
      options.assertion = mkOption { type = types.bool; };
      options.message = mkOption { type = types.str; };
    })) [ ];
    warnings = option (types.listOf types.str) [ ];

    environment.etc = option (types.attrsOf (types.submodule {
      options.source = mkOption { type = types.path; };
    })) { };
    environment.systemPackages = option (types.listOf types.package) [ ];

    security.allowUserNamespaces = option types.bool true;
    security.polkit.enable = option types.bool false;
    security.polkit.extraConfig = option types.lines "";

    systemd.packages = option (types.listOf types.package) [ ];
    systemd.tmpfiles.packages = option (types.listOf types.package) [ ];
    systemd.sockets = option (unit { socketConfig = option (types.attrsOf value) { }; }) { };
    systemd.services = option (unit {
      path = option (types.listOf (types.either types.package types.str)) [ ];
      reloadIfChanged = option types.bool false;
      serviceConfig = option (types.attrsOf value) { };
    }) { };

    users.groups = option (types.attrsOf (types.submodule { options.members = option (types.listOf types.str) [ ]; })) { };
    users.users = option (types.attrsOf (types.submodule {
      options = {
        isSystemUser = option types.bool false;
        group = option types.str "";
        description = option types.str "";
      };
    })) { };

    # What NixOS makes of a configuration: nothing, if an assertion does not hold.
    system.result = mkOption { type = types.raw; };
  };

  config.system.result =
    let failed = builtins.filter (a: !a.assertion) config.assertions; in
    if failed == [ ] then config
    else throw "Failed assertions:\n${lib.concatMapStrings (a: "- ${a.message}\n") failed}";
}
