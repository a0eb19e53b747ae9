# SPDX-License-Identifier: MIT
#
# The options of services.nix-sandbox; what they do is in module.nix.
{ lib, pkgs, ... }:

let
  inherit (lib) literalExpression mkOption types;
  keys = import ./configuration-keys.nix { inherit lib; };

  environment = {
    options = keys.options keys.environment // {
      preset = mkOption {
        type = types.nullOr (types.enum [ "default" "node" "python" "shell" ]);
        default = null;
        description = "The preset whose interpreters and packages the environment has, besides its own.";
      };
      interpreters = mkOption {
        type = types.listOf (types.enum [ "python" "bash" "node" ]);
        default = [ ];
        description = "Without a preset: what runs code. The first is the default.";
      };
      packages = mkOption {
        type = types.listOf types.package;
        default = [ ];
        example = literalExpression "[ pkgs.ripgrep pkgs.git ]";
        description = "Packages whose programs are in PATH.";
      };
      pythonPackages = mkOption {
        type = types.functionTo (types.listOf types.package);
        default = _: [ ];
        defaultText = literalExpression "ps: [ ]";
        example = literalExpression "ps: [ ps.numpy ps.pandas ]";
        description = "Packages that Python imports, as for `python3.withPackages`.";
      };
      nodePackages = mkOption {
        type = types.listOf types.package;
        default = [ ];
        description = "Packages that node finds with `require()`, in {file}`lib/node_modules`.";
      };
      description = mkOption {
        type = types.str;
        default = "";
        description = "What {command}`sandboxctl envs` and the tool's description tell of it.";
      };
      artifact = mkOption {
        type = types.nullOr types.package;
        default = null;
        example = literalExpression "inputs.environments.packages.x86_64-linux.analysis";
        description = "An environment of this name that was made by `mkSandbox`, of a flake for example. It excludes all else.";
      };
    };
  };
in
{
  options.services.nix-sandbox = {
    enable = lib.mkEnableOption "nix-sandbox, persistent sandboxes for code of AI agents";

    package = mkOption {
      type = types.package;
      default = pkgs.callPackage ./package.nix { };
      defaultText = literalExpression "pkgs.callPackage ./package.nix { }";
      description = "The nix-sandbox package to use.";
    };

    presets = mkOption {
      type = types.bool;
      default = true;
      description = ''
        Whether there are the environments `python`, `shell`, `node` and `default`, which is all three of them in one
        session.
      '';
    };

    environments = mkOption {
      type = types.attrsOf (types.submodule environment);
      default = { };
      example = literalExpression ''
        {
          analysis = {
            preset = "python";
            pythonPackages = ps: [ ps.numpy ps.pandas ];
            memoryMb = 4096;
          };
        }
      '';
      description = ''
        Environments that sessions can be made of. A jail sees the closure of its environment and nothing else of the
        store. One that is added or removed here is there, or gone, with the next session; nothing is restarted.
      '';
    };

    limits.defaults = keys.options keys.defaults;
    limits.max = keys.options keys.limits;
    session = keys.options keys.session;

    network.sets = mkOption {
      type = types.attrsOf (types.listOf types.str);
      default = { };
      example = { git-hosts = [ "git.example" "*.git.example:22" ]; };
      description = "Lists of network rules by the names that environments use: `@git-hosts`.";
    };
    network.limits = keys.options keys.networkLimits;

    settings = mkOption {
      type = types.submodule { freeformType = (pkgs.formats.json { }).type; };
      default = { };
      example = { user.max_sessions = 16; audit.keep = 30; };
      description = ''
        What else is in {file}`/etc/nix-sandbox/sandboxd.json`; {manpage}`nix-sandbox.conf(5)` has the keys. The file is
        checked by sandboxd when the system is built. Everybody can read it.
      '';
    };

    configFile = mkOption {
      type = types.nullOr types.path;
      default = null;
      example = literalExpression "./nix-sandbox.toml";
      description = ''
        A TOML file with the sections `defaults`, `max`, `session` and `environments.NAME`, in which `preset`, `flake` or
        `interpreter` says what it is. It is read as if the options had been set.
      '';
    };

    adminGroup = mkOption {
      type = types.nullOr (types.strMatching "[a-z_][a-z0-9_-]*");
      default = null;
      example = "nix-sandbox-admin";
      description = ''
        A group whose members see and manage the sessions of all users without a password: they can end, freeze and
        limit them and read what was run in them, but not run code in them.
      '';
    };

    mcp = {
      enable = lib.mkEnableOption "{file}`/etc/nix-sandbox/mcp.json`, which editors can be pointed at" // { default = true; };
      serverName = mkOption {
        type = types.strMatching "[A-Za-z0-9_-]+";
        default = "nix-sandbox";
        description = "What editors call the server.";
      };
      arguments = mkOption {
        type = types.listOf types.str;
        default = [ ];
        example = [ "--project-mode" "read-write" ];
        description = "Arguments of {manpage}`nix-sandbox-mcp(1)`.";
      };
    };
  };
}
