# SPDX-License-Identifier: MIT
"""The module of NixOS, evaluated with a typed stub of the options of NixOS that it sets."""

EVALUATE = """
  let
    pkgs = import <nixpkgs> { };
    inherit (pkgs) lib;
    evaluate = module: (lib.evalModules {
      specialArgs = { inherit pkgs; };
      modules = [ <repo/nix/module.nix> <nixpkgs/nixos-options.nix> { services.nix-sandbox.enable = true; } module ];
    }).config.system.result;
    sources = c: lib.mapAttrs (_: e: "${e.source}") c.environment.etc;
  in
"""

# Every option.
FULL = """{ pkgs, ... }: { services.nix-sandbox = {
  presets = false;
  limits.defaults = { timeoutSeconds = 60; memoryMb = 1024; cpus = 1.5; diskMb = 2048; processes = 256; cpuWeight = 50;
                      ioWeight = 60; ioReadMbps = 10; ioWriteMbps = 5.5; project = "none"; };
  limits.max = { timeoutSeconds = 600.5; memoryMb = 4096; };
  session = { standbyAfterSeconds = 60; idleTimeoutSeconds = 600; maxLifetimeSeconds = 0; turnBudgetSeconds = 300;
              reclaimAfterSeconds = 30; backgroundJobs = "keep-awake"; checkpoints = "never"; onDisconnect = "end"; };
  network.sets = { web = [ "www.example" "*.www.example:8080" ]; };
  network.limits = { connections = 5; rateMbps = 0.5; transferMb = 100; idleSeconds = 30; totalSeconds = 600.5; };
  settings = { user.max_sessions = 4; audit.log_code = true; session.standby_after_seconds = 60; };
  adminGroup = "sandbox-admins";
  mcp = { serverName = "box"; arguments = [ "--project-mode" "none" ]; };
  environments.analysis = { preset = "python"; packages = [ pkgs.ripgrep ]; pythonPackages = ps: [ ps.numpy ];
                            memoryMb = 2048; timeoutSeconds = 300; cpus = 2; diskMb = 500; project = "read-write";
                            network = [ "@web" "!x.www.example" ]; };
  environments.both = { interpreters = [ "node" "bash" ]; nodePackages = [ pkgs.jq ]; description = "Two of them"; };
}; }"""


def evaluated(nix, module, what):
    """Something of the configuration c that NixOS makes of a module."""
    return nix.eval(f"{EVALUATE} let c = evaluate ({module}); in {what}")
