# SPDX-License-Identifier: MIT
{
  mkSandbox,
  bash,
  bc,
  coreutils,
  diffutils,
  file,
  findutils,
  gawk,
  gnugrep,
  gnused,
  jq,
  tree,
  extraPackages ? [ ],
}:

mkSandbox {
  name = "shell";
  description = "Bash with the usual tools";
  preset = extraPackages == [ ];
  interpreters = [ "bash" ];
  packages = [
    bash
    bc
    coreutils
    diffutils
    file
    findutils
    gawk
    gnugrep
    gnused
    jq
    tree
  ] ++ extraPackages;
}
