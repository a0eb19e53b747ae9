# SPDX-License-Identifier: MIT
{
  description = "Persistent, limited sandboxes for the code that AI agents write";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      systems = [ "x86_64-linux" "aarch64-linux" ];
      forEachSystem = f: lib.genAttrs systems (system: f nixpkgs.legacyPackages.${system});
      ownPackages = pkgs: self.packages.${pkgs.stdenv.hostPlatform.system};
    in
    {
      packages = forEachSystem (
        pkgs:
        {
          default = (ownPackages pkgs).nix-sandbox;
          nix-sandbox = pkgs.callPackage ./nix/package.nix { };
        }
        // lib.mapAttrs' (name: lib.nameValuePair "env-${name}") (import ./nix/environments/index.nix pkgs)
      );

      overlays.default = final: _: { nix-sandbox = final.callPackage ./nix/package.nix { }; };

      # Not the path itself, which Nix before 2.9 takes for no module.
      nixosModules.default = { imports = [ ./nix/module.nix ]; };

      # mkSandbox pkgs { name = "data"; interpreters = [ "python" ]; pythonPackages = ps: [ ps.numpy ]; }
      lib.mkSandbox = pkgs: pkgs.callPackage ./nix/mk-sandbox.nix { };

      # fromToml pkgs ./nix-sandbox.toml: what the file says, as the options of services.nix-sandbox
      lib.fromToml = pkgs: import ./nix/from-toml.nix { inherit (pkgs) lib; inherit (pkgs.stdenv.hostPlatform) system; };

      checks = forEachSystem (
        pkgs:
        removeAttrs (ownPackages pkgs) [ "default" ]
        // lib.mapAttrs' (name: test: lib.nameValuePair "vm-${name}" (pkgs.testers.runNixOSTest test)) (import ./nix/tests)
      );

      devShells = forEachSystem (pkgs: {
        default = pkgs.mkShell {
          inputsFrom = [ (ownPackages pkgs).nix-sandbox ];
          packages = [
            pkgs.bubblewrap
            pkgs.clang-tools
            pkgs.criterion
            pkgs.nodejs
            (pkgs.python3.withPackages (ps: [ ps.dill ps.pytest ]))
          ];
        };
      });

      formatter = forEachSystem (pkgs: pkgs.nixfmt-tree);
    };
}
