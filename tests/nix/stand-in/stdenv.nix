# SPDX-License-Identifier: MIT
# mkDerivation over this machine's compiler and make: the phases in nixpkgs' order and with the variables that our
# package uses. It shows that the source is complete and that the flags are right; since it sees all of this machine's
# headers and libraries, it does not show that the list of dependencies is.
{ lib, system, build, libc }:
let
  script = ''
    runPhase() { # NAME DEFAULT: what the package says, or what nixpkgs would do; and the hooks around it
      local name=$1 default=$2 pre=pre''${1^} post=post''${1^} body=''${1}Phase
      eval "''${!pre:-}"
      eval "''${!body:-$default}"
      eval "''${!post:-}"
    }
    patchShebangs() { :; } # this machine has what they name

    cd "$NIX_BUILD_TOP"
    if [ -z "''${dontUnpack:-}" ]; then
      cp -r "$src" source
      chmod -R u+w source
      cd source
    fi
    runPhase patch :
    runPhase configure :
    export OPTIMIZE=-O1 # half the time
    runPhase build 'make -j''${NIX_BUILD_CORES:-1} $makeFlags ''${buildFlags:-}'
    [ -z "''${doCheck:-}" ] || runPhase check 'make -j''${NIX_BUILD_CORES:-1} $makeFlags ''${checkFlags:-} ''${checkTarget:-check}'
    runPhase install 'make $makeFlags ''${installFlags:-} install'
    runPhase fixup :
    [ -z "''${doInstallCheck:-}" ] || runPhase installCheck :
  '';

  mkDerivation = argument:
    let
      f = if lib.isFunction argument then argument else _: argument;
      make = f:
        let
          attrs = f (attrs // { finalPackage = package; });
          package = build (removeAttrs attrs [ "env" "outputs" "strictDeps" ] // attrs.env or { } // {
            inherit script;
            name = attrs.name or "${attrs.pname}-${attrs.version}";
          }) // lib.getAttrs (lib.intersectLists [ "pname" "version" "src" ] (lib.attrNames attrs)) attrs // {
            # Of the previous attributes, or of the final ones and these.
            overrideAttrs = change: make (final:
              let old = f final; both = change final; in old // (if lib.isFunction both then both old else change old));
          };
        in
        package;
    in
    make f;
in
{
  inherit mkDerivation;
  hostPlatform = { inherit system; isLinux = true; isx86_64 = system == "x86_64-linux"; isAarch64 = system == "aarch64-linux"; isMusl = false; isStatic = false; };
  buildPlatform = { inherit system; canExecute = host: host.system == system; };
  cc = { inherit libc; };
}
