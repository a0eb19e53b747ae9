# SPDX-License-Identifier: MIT
"""The stand-in for nixpkgs means what nixpkgs means, where our files depend on it."""
import json
import os

import pytest

LIB = "with import <nixpkgs/minilib.nix>; "
PKGS = "with import <nixpkgs> { }; "
MODULE = """
  {
    options.a = {
      name = mkOption { type = types.str; default = "none"; };
      list = mkOption { type = types.listOf types.int; default = [ 9 ]; };
      text = mkOption { type = types.lines; default = ""; };
      fixed = mkOption { type = types.int; default = 1; readOnly = true; };
      must = mkOption { type = types.int; };
      many = mkOption {
        default = { };
        type = types.attrsOf (types.submodule ({ name, config, ... }: {
          options.size = mkOption { type = types.ints.positive; default = 1; };
          options.label = mkOption { type = types.str; default = "${name}:${toString config.size}"; };
        }));
      };
      free = mkOption {
        default = { };
        type = types.submodule {
          freeformType = types.nullOr (types.attrsOf types.anything);
          options.known.n = mkOption { type = types.int; default = 1; };
        };
      };
    };
  }
"""


def config(*modules, attribute="a"):
    return f"{LIB}(evalModules {{ modules = [ {MODULE} {' '.join(f'({m})' for m in modules)} ]; }}).config.{attribute}"


@pytest.mark.parametrize("modules, attribute, value", [
    ([], "a.name", "none"),
    (['{ a.name = "one"; }'], "a.name", "one"),
    (['{ a.name = mkForce "two"; }', '{ a.name = "one"; }'], "a.name", "two"),
    (['{ a.name = mkDefault "two"; }', '{ a.name = "one"; }'], "a.name", "one"),
    (['{ a.name = mkIf false "one"; }'], "a.name", "none"),
    (['{ config, ... }: { a = mkIf (config.a.list == [ 9 ]) { name = "one"; }; }'], "a.name", "one"),
    (['{ a = mkMerge [ { list = [ 2 ]; } { list = mkBefore [ 1 ]; } (mkIf true { list = mkAfter [ 3 ]; }) ]; }'], "a.list", [1, 2, 3]),
    (['{ a.text = "x"; }', '{ a.text = "y"; }'], "a.text", "x\ny"),
    (['{ a.many.x = { }; a.many.y.size = 2; }'], "a.many",
     {"x": {"size": 1, "label": "x:1"}, "y": {"size": 2, "label": "y:2"}}),
    (['{ a.many.x.size = 3; }', '{ a.many.x.label = "l"; }'], "a.many", {"x": {"size": 3, "label": "l"}}),
    (['{ a.many = mkIf false { x = { }; }; }'], "a.many", {}),
    (['{ a.many.x = mkIf false { }; }'], "a.many", {}),
    (['{ a.free.other.thing = 1; a.free.known.m = 2; }'], "a.free", {"known": {"n": 1, "m": 2}, "other": {"thing": 1}}),
    ([], "a.free", {"known": {"n": 1}}),
    (['{ imports = [ { a.name = "in"; } ]; }'], "a.name", "in"),
    (['{ options.b = mkOption { type = types.nullOr types.str; }; config.a.name = "b"; }'], "b", None),
])
def test_definitions(nix, modules, attribute, value):
    assert nix.eval(config(*modules, attribute=attribute)) == value


@pytest.mark.parametrize("module, attribute, words", [
    ("{ a.nothing = 1; }", "a.name", "The option `a.nothing' does not exist"),
    ("{ a.many.x.nothing = mkIf false 1; }", "a.many", "The option `a.many.x.nothing' does not exist"),
    ("{ a.name = 1; }", "a.name", "A definition for option `a.name' is not of type `string'"),
    ("{ a.many.x.size = 0; }", "a.many", "option `a.many.x.size' is not of type `positive integer, meaning >0'"),
    ('{ imports = [ { a.name = "x"; } { a.name = "y"; } ]; }', "a.name", "The option `a.name' has conflicting definition values"),
    ("{ a.fixed = 2; }", "a.fixed", "The option `a.fixed' is read-only"),
    ("{ }", "a.must", "The option `a.must' was accessed but has no value defined"),
    ("{ a = true; }", "a.name", "The option `a' is a set of options and was given true"),
    ("{ config.a.name = \"x\"; a.name = \"y\"; }", "a.name", "unsupported attribute `a'"),
    ("{ options.a.name = mkOption { }; }", "a.name", "The option `a.name' is already declared"),
    ("{ options.b = mkOption { typ = types.str; }; }", "b", "unexpected argument 'typ'"),
    ("{ wrong, ... }: { }", "a.name", "`wrong'"),
])
def test_refusals(nix, module, attribute, words):
    assert words in nix.refused(config(module, attribute=attribute))


@pytest.mark.parametrize("expression, value", [
    ('splitString "." "a.b..c"', ["a", "b", "", "c"]),
    ('hasInfix "b.c" "ab.cd"', True),
    ('hasInfix "b.c" "abxcd"', False),
    ('trim "  a b\n"', "a b"),
    ('escapeShellArgs [ "a" "b c" "d\'e" ]', "a 'b c' 'd'\\''e'"),
    ("recursiveUpdate { a.b = 1; a.c = 2; } { a.b = 3; }", {"a": {"b": 3, "c": 2}}),
    ("(callPackageWith { x = 1; y = 2; } ({ x, y ? 5, z ? 7 }: { sum = x + y + z; }) { }).sum", 10),
    ("((callPackageWith { x = 1; } ({ x, z ? 7 }: { sum = x + z; }) { }).override { z = 1; }).sum", 2),
    ("(types.either types.int types.str).check true", False),
    ("(types.enum [ 1 2 ]).description", "one of 1, 2"),
])
def test_functions(nix, expression, value):
    assert nix.eval(LIB + expression) == value


def test_overlays(nix):
    assert nix.eval(PKGS + '(extend (final: prev: { tree = prev.tree // { version = "2"; }; x = final.tree.version; })).x') == "2"


def test_environment_has_links_and_closure(nix):
    """buildEnv links what its packages have, and closureInfo lists what is referred to and no more."""
    path, info = nix.build_all(PKGS + """
      let env = buildEnv { name = "env"; paths = [ jq tree ]; pathsToLink = [ "/bin" ]; };
      in [ env (closureInfo { rootPaths = [ env ]; }) ]""")
    assert sorted(os.listdir(os.path.join(path, "bin"))) == ["jq", "tree"]
    with open(os.path.join(info, "store-paths"), encoding="utf-8") as f:
        assert f.read().split() == nix.closure(path)
    assert {nix.name(p) for p in nix.closure(path)} == {"env", "jq-1.0", "tree-1.0"}


def test_json_is_generated(nix):
    path = nix.build(PKGS + '(formats.json { }).generate "x.json" { a = [ 1 true null "${"text"}" ]; }')
    with open(path, encoding="utf-8") as f:
        assert json.load(f) == {"a": [1, True, None, "text"]}


def test_source_is_what_is_named(nix):
    """fileset.toSource takes the named files only, and refuses a name of nothing."""
    path = nix.build(PKGS + """runCommand "copy" { source = lib.fileset.toSource {
      root = <repo>;
      fileset = lib.fileset.unions [ <repo/Makefile> (lib.fileset.fileFilter (f: f.hasExt "h") <repo/lib>) ];
    }; } ''cp -r "$source" "$out"''""")
    files = {os.path.relpath(os.path.join(d, f), path) for d, _, fs in os.walk(path) for f in fs}
    assert "Makefile" in files and "lib/text.h" in files
    assert all(f == "Makefile" or f.endswith(".h") for f in files)
    assert "nothing does not exist" in nix.refused(LIB + "fileset.toSource { root = <repo>; fileset = /. + (toString <repo> + \"/nothing\"); }")
