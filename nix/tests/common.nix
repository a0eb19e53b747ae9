# SPDX-License-Identifier: MIT
#
# What the machines of all tests have: the service, two people who use it, and a program to talk MCP with.
{ pkgs, ... }:
{
  imports = [ ../module.nix ];

  services.nix-sandbox.enable = true;

  users.users.alice.isNormalUser = true;
  users.users.bob.isNormalUser = true;
  # A project is a directory's name; both use the same to show that this is not what keeps them apart.
  systemd.tmpfiles.rules = [ "d /var/lib/project 0755 alice users -" ];

  environment.systemPackages = [ (pkgs.writeShellScriptBin "mcp-talk" (builtins.readFile ./mcp-talk.sh)) ];

  # The test driver's machines panic when memory is short, a control group's as well: here that is tested.
  boot.kernel.sysctl."vm.panic_on_oom" = 0;

  virtualisation.memorySize = 2048;
  virtualisation.cores = 2;
}
