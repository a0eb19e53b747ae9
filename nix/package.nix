# SPDX-License-Identifier: MIT
#
# All that `make install` installs, below one prefix. What is looked for in PATH elsewhere is compiled in here, because a
# service of NixOS finds nothing there; configuration is still read from /etc.
{
  lib,
  stdenv,
  acl,
  bubblewrap,
  c-ares,
  coreutils,
  criterion,
  json_c,
  libarchive,
  libcgroup,
  libidn2,
  libseccomp,
  ncurses,
  nettle,
  pkg-config,
  systemdLibs,
}:

let
  # sandbox-agent is static, since a jail has only the libraries of its environment. nixpkgs builds these two without
  # their static half; their tests have run where they were built with it off.
  withStatic =
    library:
    library.overrideAttrs (_: {
      dontDisableStatic = true;
      doCheck = false;
    });
in
stdenv.mkDerivation (finalAttrs: {
  pname = "nix-sandbox";
  version = builtins.head (builtins.match ".*#define NIX_SANDBOX_VERSION \"([^\"]+)\".*" (builtins.readFile ../lib/version.h));

  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../CHANGELOG.md
      ../LICENSE
      ../Makefile
      ../README.md
      ../agent
      ../become
      ../completions
      ../ctl
      ../daemon
      ../docs/architecture.md
      ../docs/examples
      ../docs/man
      ../environments
      ../lib
      ../polkit
      ../proxy
      ../shim
      ../snapshot
      ../tests/fuzz/fuzz.mk
      ../tests/tests.mk
      ../tests/unit
      ../tools/install.mk
      ../units
    ];
  };

  strictDeps = true;
  enableParallelBuilding = true;

  nativeBuildInputs = [ pkg-config ];
  buildInputs = [
    (withStatic acl)
    (withStatic libarchive)
    c-ares
    json_c
    libcgroup
    libidn2
    libseccomp
    ncurses
    nettle
    systemdLibs
  ]
  ++ lib.optionals (stdenv.cc.libc ? static) [
    stdenv.cc.libc
    stdenv.cc.libc.static
  ];
  checkInputs = [ criterion ];

  makeFlags = [
    "PREFIX=${placeholder "out"}"
    "SYSCONFDIR=/etc"
    "BWRAP=${lib.getExe bubblewrap}"
    "KILL=${lib.getExe' coreutils "kill"}"
    "SYSTEMD_VERSION=${lib.versions.major systemdLibs.version}"
    "WERROR=0"
  ];

  # The part of the tests that needs neither rights nor an installed daemon.
  doCheck = stdenv.buildPlatform.canExecute stdenv.hostPlatform;
  checkTarget = "check-unit";

  meta = {
    description = "Persistent, limited sandboxes for the code that AI agents write";
    longDescription = ''
      Sessions of Python, bash and node whose state lives on between calls, each inside of a bubblewrap jail and a
      control group. Editors launch nix-sandbox-mcp, which speaks MCP; sandboxd holds the sessions of all users.
    '';
    license = lib.licenses.mit;
    platforms = [ "x86_64-linux" "aarch64-linux" ];
    mainProgram = "sandboxctl";
  };
})
