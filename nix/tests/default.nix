# SPDX-License-Identifier: MIT
#
# The tests in virtual machines, as modules for pkgs.testers.runNixOSTest: { service = { name; nodes; testScript; }; … }.
# Their scripts are the .py files beside this one, which tests/pid1 runs on another machine, too.
{
  service = import ./service.nix;
  options = import ./options.nix;
}
