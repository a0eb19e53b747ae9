# SPDX-License-Identifier: MIT
# This machine's programs as store paths that need nothing of the machine but the kernel: each with the libraries that
# it is linked to and a loader of its own. Sourced by the builders of hostpkgs.nix.

# FILE…: everything that the loader finds for them, into $out/lib.
take_libraries() {
        mkdir -p "$out/lib"
        local library
        for library in $(for f; do ldd "$f"; done | grep -o '/[^ ]*\.so[^ ]*' | sort -u); do
                [ -e "$out/lib/${library##*/}" ] || install -m 755 "$library" "$out/lib/"
        done
}

# TARGET: its loader and its libraries are those of $out. An rpath in the old sense, which unlike a runpath holds for
# the libraries of libraries, too, and for what is loaded at run time.
relink() {
        local loader
        loader=$(patchelf --print-interpreter "$1")
        patchelf --force-rpath --set-rpath "$out/lib" --set-interpreter "$out/lib/${loader##*/}" "$1"
}

# PROGRAM…: into $out/bin; what is a script needs nothing.
take_programs() {
        mkdir -p "$out/bin"
        local program source
        for program; do
                source=$(readlink -f "$(type -P "$program")")
                install -m 755 "$source" "$out/bin/$program"
                patchelf --print-interpreter "$source" >/dev/null 2>&1 || continue
                take_libraries "$source"
                relink "$out/bin/$program"
        done
}
