# SPDX-License-Identifier: MIT
#
# The options of the module: environments of one's own in every way in which they can be made, the TOML form, settings,
# the group that looks after everybody's sessions, and a switch to another configuration.
{
  name = "nix-sandbox-options";

  nodes.machine =
    { pkgs, ... }:
    let
      mkSandbox = pkgs.callPackage ../mk-sandbox.nix { };
    in
    {
      imports = [ ./common.nix ];

      services.nix-sandbox = {
        environments.data = {
          preset = "python";
          description = "Python that reads YAML";
          packages = [ pkgs.jq ];
          pythonPackages = ps: [ ps.pyyaml ];
          memoryMb = 300;
          timeoutSeconds = 5;
        };
        environments.bare.interpreters = [ "bash" ];
        configFile = ./options.toml;
        limits.max.memoryMb = 1024;
        settings.user.max_sessions = 3;
        adminGroup = "sandbox-admins";
        mcp.serverName = "sandbox";
      };

      users.users.carol = {
        isNormalUser = true;
        extraGroups = [ "sandbox-admins" ];
      };

      # Where an administrator or a user could have built them, with "nix build -o".
      environment.etc."built/dropped".source = mkSandbox {
        name = "dropped";
        interpreters = [ "bash" ];
        packages = [ pkgs.hello ];
      };

      specialisation.more.configuration.services.nix-sandbox = {
        environments.more.interpreters = [ "bash" ];
        limits.defaults.memoryMb = 256;
      };
    };

  testScript = builtins.readFile ./common.py + builtins.readFile ./options.py;
}
