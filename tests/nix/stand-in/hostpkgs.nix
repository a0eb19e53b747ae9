# SPDX-License-Identifier: MIT
# An overlay for the stand-in: packages that run, because they are this machine's programs. Environments of them are
# closures like any other, of which a jail can see nothing but the store paths.
final: prev:
let
  hostClosure = "/bin/bash ${../host-closure}";

  hostPackage =
    pname: script:
    final.runCommandLocal "${pname}-host" {
      passthru = { inherit pname; version = "host"; };
      meta.mainProgram = pname;
    } script;
  hostPrograms = pname: programs: hostPackage pname "${hostClosure} programs $out ${toString programs}";

  pythonPackage =
    pname:
    hostPackage "python3-${pname}" ''
      to=$out/lib/python3/dist-packages
      mkdir -p "$to"
      cp -rL /usr/lib/python3/dist-packages/${pname} "$to"
    '';
in
{
  bash = hostPackage "bash" "${hostClosure} package bash $out";
  bc = hostPrograms "bc" [ "bc" ];
  coreutils = hostPackage "coreutils" "${hostClosure} package coreutils $out";
  diffutils = hostPrograms "diffutils" [ "cmp" "diff" ];
  findutils = hostPrograms "findutils" [ "find" "xargs" ];
  gawk = hostPrograms "gawk" [ "gawk" ];
  gnugrep = hostPrograms "gnugrep" [ "grep" ];
  gnused = hostPrograms "gnused" [ "sed" ];
  jq = hostPrograms "jq" [ "jq" ];
  nodejs = hostPackage "nodejs" "${hostClosure} package node $out";
  tree = hostPrograms "tree" [ "tree" ];

  # Its knowledge is a file, whose place is compiled in.
  file = hostPackage "file" ''
    ${hostClosure} programs $out file
    mv "$out/bin/file" "$out/lib/file"
    cp -L /usr/share/misc/magic.mgc "$out/lib/"
    printf '#!/bin/sh\nexec %s/lib/file --magic-file %s/lib/magic.mgc "$@"\n' "$out" "$out" >"$out/bin/file"
    chmod +x "$out/bin/file"
  '';

  python3 = hostPackage "python3" "${hostClosure} package python $out" // {
    pkgs = prev.python3.pkgs // { dill = pythonPackage "dill"; };
    # Python finds its prefix beside the program, links followed, so the program is copied and the rest is linked.
    withPackages = f: final.runCommandLocal "python3-env" { packages = f final.python3.pkgs; meta.mainProgram = "python3"; } ''
      mkdir -p "$out/bin" "$out/lib/python3/dist-packages"
      cp -P ${final.python3}/bin/python3* "$out/bin/"
      ln -s ${final.python3}/lib/python3.* "$out/lib/"
      for package in $packages; do
        ln -sf "$package"/lib/python3/dist-packages/* "$out/lib/python3/dist-packages/"
      done
    '';
  };
}
