# SPDX-License-Identifier: MIT
#
# The service as one line of configuration makes it: what is promised for it on any machine.
{
  name = "nix-sandbox-service";

  nodes.machine = {
    imports = [ ./common.nix ];

    # The same with short bounds, for what would take hours.
    specialisation.brief.configuration.services.nix-sandbox = {
      session.standbyAfterSeconds = 1;
      session.idleTimeoutSeconds = 4;
    };
  };

  testScript = builtins.readFile ./common.py + builtins.readFile ./service.py;
}
