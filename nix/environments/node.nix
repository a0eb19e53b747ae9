# SPDX-License-Identifier: MIT
{
  mkSandbox,
  coreutils,
  extraPackages ? [ ],
  extraNodePackages ? [ ],
}:

mkSandbox {
  name = "node";
  description = "Node.js";
  preset = extraPackages == [ ] && extraNodePackages == [ ];
  interpreters = [ "node" ];
  packages = [ coreutils ] ++ extraPackages;
  nodePackages = extraNodePackages;
}
