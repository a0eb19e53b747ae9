# SPDX-License-Identifier: MIT
# Stands in for nixpkgs' package set: functions that really build, with this machine's own programs, and packages that
# are only names, because nothing that is tested runs them. Packages which must run (environments made of this
# machine's programs) are put in by overlays.
{ system ? builtins.currentSystem, overlays ? [ ], config ? { } }:
let
  lib = import ./minilib.nix;

  # A derivation of nixpkgs' shape; script runs in bash with this machine's programs.
  build = { name, script, passthru ? { }, meta ? { }, outputs ? [ "out" ], ... }@args:
    derivation (removeAttrs args [ "script" "passthru" "meta" ] // {
      inherit system;
      builder = "/bin/bash";
      # Nix takes the end of a builder's output for its end, and kills it. Programs of coreutils close their output
      # before they exit, and bash would execute the last one in its own process.
      args = [ "-euc" "${script}\nexit" ];
      PATH = "/usr/local/bin:/usr/bin:/bin";
    }) // { inherit meta passthru; } // passthru;

  stdenv = import ./stdenv.nix { inherit lib system build; libc = dummy "glibc" // { static = dummy "glibc-static"; }; };

  # Only a name.
  dummy = pname: stdenv.mkDerivation {
    inherit pname;
    version = "1.0";
    meta.mainProgram = pname;
    dontUnpack = true;
    buildPhase = "true";
    installPhase = ''mkdir -p "$out/bin"; echo "stands in for ${pname}" >"$out/bin/${pname}"'';
  };

  # Programs of this machine, under the package's name.
  linked = pname: programs: (dummy pname).overrideAttrs (old: {
    meta.mainProgram = lib.head programs;
    installPhase = ''mkdir -p "$out/bin"; for p in ${toString programs}; do ln -s "$(type -P "$p")" "$out/bin/"; done'';
  });

  names = [
    "acl" "attr" "bash" "bashInteractive" "bc" "c-ares" "clang-tools" "criterion" "diffutils" "file" "findutils"
    "gawk" "gcc" "git" "gnugrep" "gnumake" "gnused" "gnutar" "jq" "json_c" "libarchive" "libcgroup" "libidn2"
    "libseccomp" "ncurses" "nettle" "nodejs" "pkg-config" "polkit" "procps" "ripgrep" "systemd" "tree" "typescript"
    "util-linux" "which"
  ];

  packages = final: lib.genAttrs names dummy // {
    inherit lib config system;
    callPackage = lib.callPackageWith final;
    callPackages = final.callPackage;
    inherit stdenv;
    glibc = stdenv.cc.libc;
    bubblewrap = linked "bubblewrap" [ "bwrap" ];
    coreutils = linked "coreutils" [ "cat" "env" "kill" "ls" "sleep" ];
    systemdLibs = (dummy "systemd-libs").overrideAttrs (_: { version = "258.1"; });
    nixfmt = dummy "nixfmt";
    nixfmt-tree = dummy "nixfmt-tree";

    python3 = dummy "python3" // {
      pkgs = lib.genAttrs [ "dill" "matplotlib" "numpy" "pandas" "pytest" "requests" "scipy" ] (n: dummy "python3-${n}");
      withPackages = f: build {
        name = "python3-env";
        packages = f final.python3.pkgs;
        meta.mainProgram = "python3";
        script = ''mkdir -p "$out/bin"; echo "$packages" >"$out/bin/python3"'';
      };
    };
    python3Packages = final.python3.pkgs;

    mkShell = args: final.stdenv.mkDerivation ({ name = "shell"; dontUnpack = true; buildPhase = "true"; installPhase = ''mkdir "$out"''; }
      // removeAttrs args [ "inputsFrom" "packages" ] // { nativeBuildInputs = args.nativeBuildInputs or [ ] ++ args.packages or [ ]; });

    runCommand = name: env: script: build (env // { inherit name script; });
    runCommandLocal = final.runCommand;
    writeText = name: text: build { inherit name text; passAsFile = [ "text" ]; script = ''cp "$textPath" "$out"''; };
    writeTextFile = { name, text, destination ? "", executable ? false, ... }: build {
      inherit name text destination;
      passAsFile = [ "text" ];
      script = ''install -D -m ${if executable then "755" else "644"} "$textPath" "$out$destination"'';
    };
    writeTextDir = path: text: final.writeTextFile { name = baseNameOf path; inherit text; destination = "/${path}"; };
    writeShellScriptBin = name: text: final.writeTextFile {
      inherit name;
      text = "#!/bin/bash\n${text}";
      destination = "/bin/${name}";
      executable = true;
    } // { meta.mainProgram = name; };

    # Later paths do not replace what earlier ones have; a directory of several becomes one of links.
    buildEnv = { name, paths, pathsToLink ? [ "/" ], postBuild ? "", passthru ? { }, meta ? { }, extraPrefix ? "", ignoreCollisions ? false, ... }: build {
      inherit name passthru meta paths pathsToLink;
      script = ''
        mkdir -p "$out${extraPrefix}"
        for p in $paths; do
          for sub in $pathsToLink; do
            [ -d "$p$sub" ] || continue
            (cd "$p" && find ".$sub" ! -type d) | while read -r f; do
              to=$out${extraPrefix}/''${f#./}
              [ -e "$to" ] || [ -L "$to" ] || { mkdir -p "''${to%/*}"; ln -s "$p/''${f#./}" "$to"; }
            done
          done
        done
        ${postBuild}
      '';
    };
    symlinkJoin = args: final.buildEnv args;

    # The requisites, as nixpkgs finds them: by the graph that Nix writes.
    closureInfo = { rootPaths }: build {
      name = "closure-info";
      exportReferencesGraph = lib.concatLists (lib.imap0 (i: p: [ "graph-${toString i}" p ]) (lib.toList rootPaths));
      script = ''mkdir "$out"; grep -h "^$NIX_STORE/" graph-* | sort -u >"$out/store-paths"'';
    };

    formats = {
      json = { }: rec {
        type = lib.types.nullOr (lib.types.oneOf [
          lib.types.bool lib.types.int lib.types.float lib.types.str lib.types.path
          (lib.types.attrsOf type) (lib.types.listOf type)
        ]) // { description = "JSON value"; };
        generate = name: value: build {
          inherit name;
          text = builtins.toJSON value;
          passAsFile = [ "text" ];
          script = ''python3 -m json.tool "$textPath" "$out"'';
        };
      };
      toml = { }: { inherit (final.formats.json { }) type; };
    };

    # Evaluates enough of a test to find what is missing in it, and runs nothing.
    testers.runNixOSTest = test: dummy "vm-test-run-${(if lib.isFunction test then test { inherit lib; pkgs = final; } else if lib.isPath test then import test else test).name}";

    extend = more: import ./minipkgs.nix { inherit system config; overlays = overlays ++ [ more ]; };
    appendOverlays = more: import ./minipkgs.nix { inherit system config; overlays = overlays ++ more; };
  };
in
lib.fix (lib.foldl' (f: overlay: lib.extends overlay f) packages overlays)
