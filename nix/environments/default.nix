# SPDX-License-Identifier: MIT
#
# The preset "default", which sessions have that are made with one of the others: its three interpreters in one session,
# so it has all that they have.
{
  mkSandbox,
  callPackage,
  python3,
  extraPackages ? [ ],
  extraPythonPackages ? _: [ ],
  extraNodePackages ? [ ],
}:

let
  shell = callPackage ./shell.nix { inherit mkSandbox; };
in
mkSandbox {
  name = "default";
  description = "Python, Bash and Node.js in one session";
  preset = extraPackages == [ ] && extraPythonPackages python3.pkgs == [ ] && extraNodePackages == [ ];
  interpreters = [ "python" "bash" "node" ];
  packages = shell.packages ++ extraPackages;
  pythonPackages = extraPythonPackages;
  nodePackages = extraNodePackages;
}
