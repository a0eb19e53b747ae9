# SPDX-License-Identifier: MIT
{
  mkSandbox,
  coreutils,
  python3,
  extraPackages ? [ ],
  extraPythonPackages ? _: [ ],
  # numpy, pandas and matplotlib; some hundred megabytes.
  withScience ? false,
}:

mkSandbox {
  name = "python";
  description = if withScience then "Python with numpy, pandas and matplotlib" else "Python";
  preset = extraPackages == [ ] && extraPythonPackages python3.pkgs == [ ] && !withScience;
  interpreters = [ "python" ];
  packages = [ coreutils ] ++ extraPackages;
  pythonPackages =
    ps:
    (if withScience then [ ps.numpy ps.pandas ps.matplotlib ] else [ ]) ++ extraPythonPackages ps;
}
