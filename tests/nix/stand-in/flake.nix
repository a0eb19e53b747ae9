# SPDX-License-Identifier: MIT
{
  description = "What stands in for nixpkgs in the tests of nix-sandbox; not a package set";

  outputs = { self }: {
    lib = import ./minilib.nix;
    legacyPackages = self.lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (system: import ./minipkgs.nix { inherit system; });
  };
}
