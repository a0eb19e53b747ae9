# SPDX-License-Identifier: MIT
# An overlay for the stand-in: packages that run, made of this machine's programs (those that every Debian has, python3
# and node). Environments of them are closures like any other, of which a jail can see nothing but the store paths.
final: prev:
let
  hostPackage =
    pname: script:
    final.runCommandLocal "${pname}-host" {
      passthru = { inherit pname; version = "host"; };
      meta.mainProgram = pname;
    } ''
      . ${./relocate.sh}
      ${script}
    '';
  hostPrograms = pname: programs: hostPackage pname "take_programs ${toString programs}";

  # Compiled modules know the time of their source, which the store changes: python is told not to compare.
  compiled = ''
    find "$out" -name '*.pyc' | python3 -c '
    import sys
    for path in sys.stdin.read().splitlines():
        with open(path, "r+b") as f:
            f.seek(4)
            f.write(bytes([1, 0, 0, 0]))
    '
  '';
  version = "$(/usr/bin/python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])')";
  pythonPackage =
    pname:
    hostPackage "python3-${pname}" ''
      to=$out/lib/python3/dist-packages
      mkdir -p "$to"
      cp -rL /usr/lib/python3/dist-packages/${pname} "$to"
      ${compiled}
    '';
in
{
  bash = hostPackage "bash" ''take_programs bash; ln -s bash "$out/bin/sh"'';
  coreutils = hostPackage "coreutils" "take_programs $(dpkg -L coreutils | sed -n 's,^\\(/usr\\)\\?/bin/,,p')";
  diffutils = hostPrograms "diffutils" [ "cmp" "diff" ];
  findutils = hostPrograms "findutils" [ "find" "xargs" ];
  gnugrep = hostPrograms "gnugrep" [ "grep" ];
  gnused = hostPrograms "gnused" [ "sed" ];
  nodejs = hostPrograms "nodejs" [ "node" ];

  python3 = hostPackage "python3" ''
    v=${version}
    PATH=/usr/bin:$PATH take_programs "python$v"
    ln -s "python$v" "$out/bin/python3"
    mkdir "$out/lib/python$v"
    cd "/usr/lib/python$v"
    ls -d * | grep -vx 'config-.*\|dist-packages\|ensurepip\|idlelib\|lib2to3\|sitecustomize.py\|test\|tkinter' |
      xargs cp -rL -t "$out/lib/python$v"
    take_libraries lib-dynload/*.so
    ${compiled}
  '' // {
    pkgs = prev.python3.pkgs // { dill = pythonPackage "dill"; };
    # Python finds its prefix beside the program, links followed, so the program is copied and the rest linked.
    withPackages = f: final.runCommandLocal "python3-env" { packages = f final.python3.pkgs; meta.mainProgram = "python3"; } ''
      v=${version}
      mkdir -p "$out/bin" "$out/lib/python3/dist-packages"
      cp "${final.python3}/bin/python$v" "$out/bin/"
      ln -s "python$v" "$out/bin/python3"
      ln -s "${final.python3}/lib/python$v" "$out/lib/"
      for package in $packages; do
        ln -sf "$package"/lib/python3/dist-packages/* "$out/lib/python3/dist-packages/"
      done
    '';
  };
}
