# SPDX-License-Identifier: MIT
#
# What the configuration of sandboxd has (nix-sandbox.conf(5)), by the names of the module's options. The module declares
# its options from these tables and writes them as settings, and fromToml reads the same keys. null is what sandboxd
# has built in.
{ lib }:

let
  inherit (lib) types;

  row = key: type: description: { inherit key type description; };

  # The bounds of daemon/limits.h.
  secondsMax = 31536000;
  memoryMbMax = 16777216;
  seconds = types.numbers.between 0.01 secondsMax;
  secondsOrNever = types.numbers.between 0 secondsMax;
  memory = types.ints.between 32 memoryMbMax;
  cpus = types.numbers.between 0.01 4096;
  weight = types.ints.between 1 10000;
  speed = types.numbers.between 0 1048576;
  projectModes = types.enum [ "none" "read-only" "read-write" ];
in
rec {
  limits = {
    timeoutSeconds = row "timeout_seconds" seconds "How long a turn may run.";
    memoryMb = row "memory_mb" memory "Memory of a session.";
    cpus = row "cpus" cpus "Processors that a session may keep busy.";
    diskMb = row "disk_mb" (types.ints.between 1 memoryMbMax) "Size of {file}`/workspace`.";
    processes = row "processes" (types.ints.between 16 4194304) "Processes of a session.";
    cpuWeight = row "cpu_weight" weight "Share of processor time where it is short.";
    ioWeight = row "io_weight" weight "Share of disk time where it is short.";
    ioReadMbps = row "io_read_mbps" speed "Megabytes a second that are read from each disk; 0 is no bound.";
    ioWriteMbps = row "io_write_mbps" speed "Megabytes a second that are written to each disk; 0 is no bound.";
  };

  project = row "project" projectModes "The most that a caller may ask for his project directory at {file}`/project`.";

  defaults = limits // { inherit project; };

  session = {
    standbyAfterSeconds = row "standby_after_seconds" secondsOrNever "When an idle session is frozen; 0 is never.";
    idleTimeoutSeconds = row "idle_timeout_seconds" secondsOrNever "When an idle session ends; 0 is never.";
    maxLifetimeSeconds = row "max_lifetime_seconds" secondsOrNever "When a session ends in any case; 0 is never.";
    turnBudgetSeconds = row "turn_budget_seconds" secondsOrNever "The time that all turns of a session take together before it ends; 0 is any.";
    reclaimAfterSeconds = row "reclaim_after_seconds" secondsOrNever "When memory is taken back from a session that is frozen; 0 is never.";
    backgroundJobs = row "background_jobs" (types.enum [ "freeze" "keep-awake" ]) "Whether a session is idle in which a job of an earlier turn runs on.";
    checkpoints = row "checkpoints" (types.enum [ "auto" "always" "never" ]) "When the state of interpreters is copied after a turn.";
    onDisconnect = row "on_disconnect" (types.enum [ "keep" "end" ]) "What becomes of a session whose client has gone.";
  };

  environment = {
    inherit (limits) timeoutSeconds memoryMb cpus diskMb;
    inherit project;
    network = row "network" (types.listOf types.str) "What sessions may reach: rules such as `*.example.org` and `git.example:22`, and `@NAME` for a set of `services.nix-sandbox.network.sets`.";
  };

  # The bounds of lib/network-limits.h.
  networkLimits = {
    connections = row "connections" (types.ints.between 1 1024) "Connections of a session at once.";
    rateMbps = row "rate_mbps" speed "Megabytes a second of a session, both directions together; 0 is no bound.";
    transferMb = row "transfer_mb" (types.ints.between 0 memoryMbMax) "Megabytes in a session's life; 0 is no bound.";
    idleSeconds = row "idle_seconds" (types.numbers.between 1 secondsMax) "When a connection is cut through which nothing goes.";
    totalSeconds = row "total_seconds" (types.numbers.between 1 secondsMax) "When any connection is cut.";
  };

  # Options of a table, null where nothing is said.
  options = lib.mapAttrs (
    _: r:
    lib.mkOption {
      type = types.nullOr r.type;
      default = null;
      description = r.description + " Where it is null, sandboxd decides.";
    }
  );

  # Those values that are not null, by the keys of the configuration.
  settings = table: values:
    lib.mapAttrs' (option: value: lib.nameValuePair table.${option}.key value) (
      lib.filterAttrs (option: value: table ? ${option} && value != null) values
    );

  # The option of a key; null where there is none.
  optionOf = table: key: lib.findFirst (option: table.${option}.key == key) null (builtins.attrNames table);
}
