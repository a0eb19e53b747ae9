# SPDX-License-Identifier: MIT
"""What turns of python give back besides text: sandbox.result(), sandbox.image(), figures, rich objects."""
import json
import zlib

import pytest
from session import py  # noqa: F401

PNG = b"\x89PNG\r\n\x1a\n"
SOME_PNG = ("import struct, zlib\n"
            "def png(n=1):\n"
            "    def part(kind, data):\n"
            "        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))\n"
            "    return (b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', n, 1, 8, 0, 0, 0, 0))\n"
            "            + part(b'IDAT', zlib.compress(bytes(n + 1))) + part(b'IEND', b''))\n")
PLOT = "import matplotlib.pyplot as plt\n"


def kinds(answer):
    return [kind for kind, _ in answer["values"]]


def result(answer):
    assert kinds(answer) == ["result"]
    return json.loads(answer["values"][0][1])


def is_png(data):
    """As a viewer would check it: the chunks are whole."""
    if not data.startswith(PNG):
        return False
    at = len(PNG)
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], "big")
        if zlib.crc32(data[at + 4:at + 8 + size]) != int.from_bytes(data[at + 8 + size:at + 12 + size], "big"):
            return False
        at += size + 12
    return at == len(data) and data.endswith(b"IEND\xaeB`\x82")


# ---------------------------------------------------------------- results


def test_result_is_of_its_turn_and_the_last_counts(py):
    assert result(py("sandbox.result(1); sandbox.result({'n': (1, 2.5, None, True), 'é': '\\ud800'})")) == {
        "n": [1, 2.5, None, True], "é": "\ud800"}
    assert py("1", "1\n")["values"] == []
    assert result(py("sandbox.result(7); 1 / 0", err=["ZeroDivisionError"], status=1)) == 7


@pytest.mark.parametrize("code", ["float('nan')", "{1}", "object()", "b''", "{(1, 2): 3}", "1j", "[float('inf')]"])
def test_what_json_has_not_is_an_error(py, code):
    answer = py(f"sandbox.result({code})", err=["TypeError: sandbox.result() takes"], status=1)
    assert answer["values"] == [] and "python-values" not in answer["stderr"] and "<string>" not in answer["stderr"]


def test_circles_and_depths_are_errors(py):
    py("x = []; x.append(x)\nsandbox.result(x)", err=["TypeError"], status=1)
    py("x = []\nfor _ in range(100000): x = [x]\nsandbox.result(x)", err=["TypeError"], status=1)
    py("x = None; 1", "1\n")


def test_module(py):
    py("import sandbox as s; s is sandbox, s.__name__", "(True, 'sandbox')\n")
    py("from sandbox import result, image; result.__module__", "'sandbox'\n")
    py("del __builtins__.sandbox, s; sandbox = 5")
    py("del sandbox; sandbox.result", any)


def test_a_module_of_the_workspace_comes_first(py):
    py("open('sandbox.py', 'w').write('mine = 1')", "8\n")
    py("import sandbox; sandbox.mine", "1\n")
    py("del sandbox; sandbox.result(1)")


def test_forked_children_give_nothing(py):
    assert kinds(py("import os\nsandbox.result(1)\nif os.fork() == 0: sandbox.result(2)\nelse: _ = os.wait()")) == ["result"]


def test_no_value_no_cost(py):
    py("x = 1; [x]", "[1]\n")
    py("import sys; 'json' in sys.modules", "False\n")


# ---------------------------------------------------------------- pictures


def test_images_of_every_kind(py):
    py(SOME_PNG + "import io, pathlib\n_ = pathlib.Path('x.png').write_bytes(png())")
    answer = py("for x in png(), bytearray(png()), 'x.png', pathlib.Path('x.png'), io.BytesIO(png()):\n    sandbox.image(x)")
    assert kinds(answer) == ["image/png"] * 5 and all(is_png(data) for _, data in answer["values"])
    assert kinds(py("sandbox.image(b'\\xff\\xd8\\xff\\xe0'); sandbox.image(b'<?xml?><svg/>')")) == ["image/jpeg", "image/svg+xml"]


@pytest.mark.parametrize("code, error", [("b'GIF89a'", "ValueError"), ("b''", "ValueError"), ("5", "TypeError"),
                                         ("'missing.png'", "FileNotFoundError"), ("object()", "TypeError")])
def test_images_that_are_none(py, code, error):
    assert py(f"sandbox.image({code})", err=[error], status=1)["values"] == []


def test_large_values_arrive_whole_though_handlers_raise(py):
    """A signal of the code's own, again and again while they are sent."""
    answer = py.driver.turn(
        "import signal\nleft = 150\n"
        "def on_alarm(*_):\n    global left\n    left -= 1\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.0005 if left else 0)\n    raise RuntimeError\n"
        "sandbox.image(b'\\xff\\xd8\\xff' + bytes(range(256)) * 30000); sandbox.result([*range(50000)])\n"
        "_ = signal.signal(signal.SIGALRM, on_alarm); _ = signal.setitimer(signal.ITIMER_REAL, 0.002)")
    assert answer["state"] == "kept"
    assert dict(answer["values"]) == {"image/jpeg": b"\xff\xd8\xff" + bytes(range(256)) * 30000,
                                      "result": json.dumps([*range(50000)]).encode()}
    while py.driver.turn("_ = signal.setitimer(signal.ITIMER_REAL, 0)")["exit_code"]:
        pass                            # an alarm ended it: there are 150 in all
    assert py("left < 150", "True\n")["values"] == []


# ---------------------------------------------------------------- what the last expression shows


def rich(**forms):
    """Code of an object with those forms."""
    methods = "".join(f"    def _repr_{form}_(self): return {value}\n" for form, value in forms.items())
    return f"{SOME_PNG}class Rich:\n    def __repr__(self): return '<Rich object>'\n{methods}Rich()"


def test_preference(py):
    assert kinds(py(rich(png="png()", svg="'<svg/>'", html="'h'", markdown="'m'"), "<Rich object>\n")) == ["image/png"]
    assert kinds(py(rich(svg="'<svg/>'", html="'h'", markdown="'m'"), "<Rich object>\n")) == ["image/svg+xml"]
    assert kinds(py(rich(html="'h'", markdown="'m'"), "<Rich object>\nm\n")) == []
    assert kinds(py(rich(html="'h'"), "<Rich object>\n")) == ["text/html"]
    assert kinds(py("x = Rich(); 5", "5\n")) == []


def test_html_only_where_the_text_says_nothing(py):
    py("class Table:\n    def __repr__(self): return 'a  b'\n    def _repr_html_(self): return '<table>'")
    assert kinds(py("Table()", "a  b\n")) == []


def test_a_smaller_form_instead_of_a_large_one(py):
    assert kinds(py(rich(png="png() + bytes(3 << 20)", jpeg="b'\\xff\\xd8\\xff'"), "<Rich object>\n")) == ["image/jpeg"]


@pytest.mark.parametrize("value", ["None", "5", "'text'", "b'GIF'", "(png(),)", "1 / 0", "''", "'\\ud800'"])
def test_bad_forms(py, value):
    answer = py(rich(png=value, svg="'<svg/>'"), "<Rich object>\n")
    assert kinds(answer) == (["image/png"] if value == "(png(),)" else ["image/svg+xml"])


def test_a_form_that_loops_is_stopped(py):
    answer = py.driver.turn("class Loop:\n    def _repr_png_(self):\n        while True: pass\nLoop()", timeout=0.5)
    assert answer["timed_out"] and answer["state"] == "kept" and answer["values"] == []
    py("1", "1\n")


def test_classes_are_not_asked(py):
    assert py("class A:\n    def _repr_png_(self): 1 / 0\nA", "<class '__main__.A'>\n")["values"] == []


# ---------------------------------------------------------------- matplotlib and PIL

matplotlib = pytest.mark.skipif(not __import__("importlib.util").util.find_spec("matplotlib"), reason="no matplotlib")
pillow = pytest.mark.skipif(not __import__("importlib.util").util.find_spec("PIL"), reason="no PIL")


@matplotlib
def test_figures_come_once(py):
    answer = py(PLOT + "for n in range(2):\n    plt.figure()\n    plt.plot([n, 2])\nNone")
    assert kinds(answer) == ["image/png"] * 2 and all(is_png(data) for _, data in answer["values"])
    assert py("plt.get_fignums()", "[]\n")["values"] == []


@matplotlib
def test_show_gives_at_once(py):
    answer = py(PLOT + "plt.plot([1])\nplt.show()\nprint(plt.get_fignums())\nplt.plot([2])\n1 / 0", "[]\n",
                err=["ZeroDivisionError"], status=1)
    assert kinds(answer) == ["image/png"] * 2


@matplotlib
def test_a_figure_as_the_last_expression_comes_once(py):
    assert kinds(py(PLOT + "fig, ax = plt.subplots(); fig", "<Figure size 640x480 with 1 Axes>\n")) == ["image/png"]
    assert kinds(py("sandbox.image(fig)")) == ["image/png"]
    assert kinds(py("plt.figure()", "<Figure size 640x480 with 0 Axes>\n")) == ["image/png"]
    assert kinds(py("_ = plt.figure()")) == []          # with nothing in it, and not shown


@matplotlib
def test_a_figure_that_cannot_be_rendered(py):
    py(PLOT + "_ = plt.figure().add_subplot().set_title('$\\\\frac{$')", err=["A figure could not be rendered: ValueError"])
    assert kinds(py("_ = plt.plot([1])")) == ["image/png"]


@matplotlib
def test_an_interrupt_while_rendering(py):
    py(PLOT + "class Slow(plt.Figure):\n    def savefig(self, *_, **__):\n        while True: pass\n1", "1\n")
    answer = py.driver.turn("plt.figure(FigureClass=Slow).add_subplot(); print('a')", timeout=0.5)
    assert answer["timed_out"] and answer["state"] == "kept" and answer["stdout"] == "a\n"
    py("plt.close('all'); 1", "1\n")


def test_without_matplotlib(py):
    py("import sys; sys.modules['matplotlib'] = None")
    py("import matplotlib.pyplot", err=["ModuleNotFoundError"], status=1)
    py("del sys.modules['matplotlib']; 1", "1\n")


@pillow
def test_images_of_pil(py):
    answer = py("from PIL import Image\nImage.new('RGB', (9, 9))", any)
    assert kinds(answer) == ["image/png"] and answer["stdout"].startswith("<PIL.Image.Image")
    assert kinds(py("sandbox.image(Image.new('L', (9, 9)))")) == ["image/png"]
