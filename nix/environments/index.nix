# SPDX-License-Identifier: MIT
#
# The presets by name, one file each, for `import ./index.nix pkgs`. ("default" is one of them: default.nix is no index.)
{ callPackage, ... }:

let
  mkSandbox = callPackage ../mk-sandbox.nix { };
in
builtins.mapAttrs (_: preset: callPackage preset { inherit mkSandbox; }) {
  default = ./default.nix;
  python = ./python.nix;
  shell = ./shell.nix;
  node = ./node.nix;
}
