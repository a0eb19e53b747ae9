# SPDX-License-Identifier: MIT
#
# services.nix-sandbox for NixOS. Units, polkit actions and tmpfiles are those of the package; here is what NixOS has to
# say itself, and what follows from the options.
#
# A switch to another configuration must not end a session. So the service is reloaded and never restarted; since a
# reload executes the path that sandboxd was started by, this is a link in /etc, which leads to the new version then.
# Environments are links in /etc as well, in the directory that sandboxd looks at by itself: one more of them changes
# neither a unit nor the configuration.
{ config, lib, pkgs, ... }:

let
  inherit (lib) mapAttrsToList mkIf mkMerge optional;
  cfg = config.services.nix-sandbox;
  keys = import ./configuration-keys.nix { inherit lib; };
  at = "services.nix-sandbox";

  # ---- environments

  presets = import ./environments/index.nix pkgs;
  mkSandbox = pkgs.callPackage ./mk-sandbox.nix { };

  makeEnvironment =
    name: e:
    let
      base = if e.preset == null then null else presets.${e.preset};
      ofBase = what: none: if base == null then none else base.${what};
    in
    mkSandbox {
      inherit name;
      inherit (e) timeoutSeconds memoryMb cpus diskMb project network;
      interpreters = ofBase "interpreters" e.interpreters;
      packages = ofBase "packages" [ ] ++ e.packages;
      pythonPackages = ps: ofBase "pythonPackages" (_: [ ]) ps ++ e.pythonPackages ps;
      nodePackages = ofBase "nodePackages" [ ] ++ e.nodePackages;
      description = if e.description == "" && base != null then base.environment.description else e.description;
    };

  artifacts =
    lib.optionalAttrs cfg.presets presets
    // lib.mapAttrs (name: e: if e.artifact != null then e.artifact else makeEnvironment name e) cfg.environments;

  # ---- the configuration

  json = pkgs.formats.json { };

  # The rules of artifacts are read with them: sandboxd would find what is wrong with one when it is asked for it.
  networks = {
    network.sets = cfg.settings.network.sets or { };
    environments = lib.mapAttrs (_: a: { inherit (a.environment) interpreters network; }) (
      lib.filterAttrs (_: a: a ? environment.network) artifacts
    );
  };

  # With the program that is going to read it, where that can be run here.
  configFile =
    pkgs.runCommand "sandboxd.json"
      {
        config = json.generate "sandboxd-unchecked.json" cfg.settings;
        networks = json.generate "sandboxd-networks.json" networks;
        sandboxd = lib.optionalString (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform)
          "${cfg.package}/libexec/nix-sandbox/sandboxd";
      }
      ''
        if [ -n "$sandboxd" ]; then
          "$sandboxd" --config "$config" --check-config >/dev/null
          "$sandboxd" --config "$networks" --check-config >/dev/null
        fi
        cp "$config" "$out"
      '';

  # ---- what is wrong

  environmentAssertions =
    name: e:
    let
      option = "${at}.environments.${name}";
      interpreters = if e.preset != null then presets.${e.preset}.interpreters else e.interpreters;
      has = interpreter: builtins.elem interpreter interpreters;
      made = e.artifact == null;
      own = lib.filterAttrs (_: set: set) {
        preset = e.preset != null;
        interpreters = e.interpreters != [ ];
        packages = e.packages != [ ];
        pythonPackages = e.pythonPackages pkgs.python3.pkgs != [ ];
        nodePackages = e.nodePackages != [ ];
        description = e.description != "";
      } // lib.filterAttrs (o: value: keys.environment ? ${o} && value != null) e;
      sets = cfg.settings.network.sets or { };
      network = if made then e.network else e.artifact.environment.network or null;
      unknownSets = builtins.filter (rule: lib.hasPrefix "@" rule && !(sets ? ${lib.removePrefix "@" rule})) (
        if network == null then [ ] else network
      );
      tooMuch = o: e.${o} != null && cfg.limits.max.${o} != null && e.${o} > cfg.limits.max.${o};
    in
    [
      {
        assertion = builtins.match "[A-Za-z0-9][A-Za-z0-9_-]{0,63}" name != null;
        message = "${option}: a name has at most 64 letters, digits, \"-\" and \"_\", and begins with a letter or a digit.";
      }
      {
        assertion = made || own == { };
        message = "${option}.artifact is all of the environment: set it without ${lib.concatStringsSep ", " (builtins.attrNames own)}.";
      }
      {
        assertion = made || (e.artifact.environment.name or null) == name;
        message = "${option}.artifact is not an environment with the name ${name} that was made by mkSandbox.";
      }
      {
        assertion = !made || interpreters != [ ];
        message = "${option}: set preset, interpreters or artifact.";
      }
      {
        assertion = e.preset == null || e.interpreters == [ ];
        message = "${option}: preset and interpreters exclude each other; the preset ${toString e.preset} has its own.";
      }
      {
        assertion = lib.unique e.interpreters == e.interpreters;
        message = "${option}.interpreters names one of them twice.";
      }
      {
        assertion = !made || has "python" || !(own ? pythonPackages);
        message = "${option}.pythonPackages: the environment has no python.";
      }
      {
        assertion = !made || has "node" || !(own ? nodePackages);
        message = "${option}.nodePackages: the environment has no node.";
      }
      {
        assertion = builtins.stringLength e.description <= 512;
        message = "${option}.description is longer than 512 bytes.";
      }
      {
        assertion = unknownSets == [ ];
        message = "${option}.network: ${lib.concatStringsSep ", " unknownSets} is not in ${at}.network.sets.";
      }
      {
        assertion = !(cfg.settings.environments or { } ? ${name});
        message = "${option} is never used, because ${at}.settings.environments.${name} goes before it.";
      }
    ]
    ++ map (o: {
      assertion = !tooMuch o;
      message = "${option}.${o} is more than ${at}.limits.max.${o}.";
    }) [ "timeoutSeconds" "memoryMb" "cpus" "diskMb" ];

  limitAssertions = map (o: {
    assertion =
      cfg.limits.defaults.${o} == null || cfg.limits.max.${o} == null || cfg.limits.defaults.${o} <= cfg.limits.max.${o};
    message = "${at}.limits.defaults.${o} is more than ${at}.limits.max.${o}.";
  }) (builtins.attrNames (removeAttrs keys.limits [ "ioReadMbps" "ioWriteMbps" ])); # there 0 is more than any

  fromToml = import ./from-toml.nix { inherit lib; inherit (pkgs.stdenv.hostPlatform) system; };
  fromFile = if cfg.configFile == null then { } else fromToml cfg.configFile;
in
{
  imports = [ ./module-options.nix ];

  config = mkMerge [
    {
      services.nix-sandbox = {
        environments = fromFile.environments or { };
        limits = fromFile.limits or { };
        session = fromFile.session or { };
        network = fromFile.network or { };
        settings = lib.filterAttrs (_: section: section != { }) {
          defaults = keys.settings keys.defaults cfg.limits.defaults;
          max = keys.settings keys.limits cfg.limits.max;
          session = keys.settings keys.session cfg.session;
          network = lib.filterAttrs (_: part: part != { }) {
            inherit (cfg.network) sets;
            limits = keys.settings keys.networkLimits cfg.network.limits;
          };
        };
      };
    }

    (mkIf cfg.enable {
      assertions =
        limitAssertions
        ++ lib.concatLists (mapAttrsToList environmentAssertions cfg.environments)
        ++ [
          {
            assertion = config.security.allowUserNamespaces;
            message = "${at} makes its jails of user namespaces: security.allowUserNamespaces must be true.";
          }
          {
            assertion = builtins.length (builtins.attrNames artifacts) <= 64;
            message = "${at}.environments: sandboxd takes 64 environments at most, with the presets.";
          }
          {
            assertion =
              artifacts == { }
              || builtins.elem "/etc/nix-sandbox/environments.d" (
                cfg.settings.environment_dirs or [ "/etc/nix-sandbox/environments.d" ]
              );
            message = "${at}.settings.environment_dirs lacks /etc/nix-sandbox/environments.d, where the presets and ${at}.environments are.";
          }
        ];
      warnings = optional (artifacts == { }) ''
        ${at}.presets is off and ${at}.environments is empty: there is nothing to make a session of, because the
        environments that sandboxd has built in take their programs from /usr, which NixOS does not have.
      '';

      environment.etc = mkMerge [
        {
          "nix-sandbox/sandboxd".source = "${cfg.package}/libexec/nix-sandbox/sandboxd";
          "nix-sandbox/sandboxd.json".source = configFile;
        }
        (lib.mapAttrs' (name: artifact: lib.nameValuePair "nix-sandbox/environments.d/${name}" { source = artifact; }) artifacts)
        (mkIf cfg.mcp.enable {
          "nix-sandbox/mcp.json".source = json.generate "mcp.json" {
            mcpServers.${cfg.mcp.serverName} = {
              type = "stdio";
              # Not the store's path, so that what is copied from here stays right.
              command = "/run/current-system/sw/bin/nix-sandbox-mcp";
              args = cfg.mcp.arguments;
            };
          };
        })
      ];
      # polkit has the actions from there as well.
      environment.systemPackages = [ cfg.package ];

      systemd.packages = [ cfg.package ];
      systemd.tmpfiles.packages = [ cfg.package ];
      # [Install] sections mean nothing to NixOS.
      systemd.sockets.sandboxd.wantedBy = [ "sockets.target" ];
      systemd.services.sandboxd = {
        reloadIfChanged = true;
        restartTriggers = [ configFile ];
        serviceConfig.ExecStart = [
          ""
          "/etc/nix-sandbox/sandboxd --runtime-dir \${RUNTIME_DIRECTORY} --state-dir \${STATE_DIRECTORY}"
        ];
      };

      # As in units/sysusers.d, which NixOS never reads.
      users.users.nix-sandbox = {
        isSystemUser = true;
        group = "nix-sandbox";
        description = "Sandbox service";
      };
      users.users.nix-sandbox-jail = {
        isSystemUser = true;
        group = "nix-sandbox-jail";
        description = "Sandboxes of root";
      };
      users.groups = mkMerge [
        {
          nix-sandbox = { };
          nix-sandbox-jail = { };
        }
        (mkIf (cfg.adminGroup != null) { ${cfg.adminGroup} = { }; })
      ];

      security.polkit.enable = true;
      security.polkit.extraConfig = mkIf (cfg.adminGroup != null) ''
        // services.nix-sandbox.adminGroup
        polkit.addRule(function(action, subject) {
                if ((action.id == "io.nixsandbox.list-others" || action.id == "io.nixsandbox.manage-others") &&
                    subject.isInGroup(${builtins.toJSON cfg.adminGroup}))
                        return polkit.Result.YES;
        });
      '';
    })
  ];
}
