# SPDX-License-Identifier: MIT
# What `import <nixpkgs> { }` is in the tests.
{ system ? builtins.currentSystem, overlays ? [ ], config ? { } }: import ./minipkgs.nix { inherit system overlays config; }
