# SPDX-License-Identifier: MIT
"""
What turns of python give back besides text: results, and pictures of figures and of other objects.

python.py runs this text in its own namespace, after python-seldom.py, when it first needs one of the functions
that this adds to `functions`. What is given collects in `given` and goes to the agent with the turn's report: an
interrupt cannot cut it short then. Whether it is too large is the agent's to say. Objects of the user's run
their own code here: what goes wrong in it must not end the turn.
"""
from io import BytesIO

SVG_LOOK = 1024
MAGICS = ((b"\x89PNG\r\n\x1a\n", b"image/png"), (b"\xff\xd8\xff", b"image/jpeg"))
PICTURE_MAX = 2 << 20                   # agent-value.h: what is larger would be dropped, another form may not be
PICTURES = (("_repr_png_", b"image/png"), ("_repr_jpeg_", b"image/jpeg"), ("_repr_svg_", b"image/svg+xml"))


def give(kind, data):
    """Keeps a value as the agent reads it. Before the first one comes a list of how much of all was sent."""
    if owed is None:                    # of a thread, between two turns
        raise RuntimeError("no turn is running that could give it back")
    if not given:
        given.append([])
    given.append((kind, b"\nvalue %s %s %d\n%s" % (owed[0], kind, len(data), data)))


def send_given():
    """Sends what the turn has given. May be left at any point and begun anew, and sends each byte once."""
    counts, *values = given
    while True:
        sent = sum(counts)
        for _, text in values:
            if sent < len(text):
                break
            sent -= len(text)
        else:
            break
        vital(counts.extend, map(write, (control,), (memoryview(text)[sent:],)))    # noted before a handler can raise
    given.clear()


# ---------------------------------------------------------------- results


def give_result(value):
    json = load("json")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"sandbox.result() takes None, bool, int, float, str, list, tuple and dict: {error}") from None
    given[1:] = [one for one in given[1:] if one[0] != b"result"]
    give(b"result", text.encode("utf-8", "backslashreplace"))       # a lone surrogate: its escape in JSON


# ---------------------------------------------------------------- pictures


def kind_of(data):
    """The media type of a picture's bytes, or None."""
    for magic, kind in MAGICS:
        if data.startswith(magic):
            return kind
    return b"image/svg+xml" if b"<svg" in data[:SVG_LOOK] else None


def form(value, name):
    """What the object gives as one of its forms, as bytes; None where it has none, or something else."""
    if not any(name in vars(kind) for kind in type(value).__mro__):
        return None
    try:
        data = getattr(value, name)()
        if isinstance(data, tuple):     # with metadata
            data = data[0]
        return data.encode() if isinstance(data, str) else bytes(data) if isinstance(data, bytes) else None
    except Exception:                   # its own, or a str that is no text
        return None


def is_figure(value):
    figure = modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, getattr(figure, "FigureBase", ()))


def png_of_figure(figure):
    place = BytesIO()
    figure.savefig(place, format="png", bbox_inches="tight")
    return place.getvalue()


def picture_of(value):
    """The best picture that an object has of itself, as (kind, bytes), or None."""
    if is_figure(value):
        return b"image/png", png_of_figure(value)
    found = None
    for name, kind in PICTURES:
        data = form(value, name)
        if data and kind_of(data) == kind:
            if len(data) <= PICTURE_MAX:
                return kind, data
            found = found or (kind, data)
    return found


def give_image(picture):
    if isinstance(picture, str) or hasattr(picture, "__fspath__"):
        with open(picture, "rb") as file:
            data = file.read()
    elif isinstance(picture, (bytes, bytearray, memoryview)):
        data = bytes(picture)
    elif isinstance(picture, BytesIO):
        data = picture.getvalue()
    elif (found := picture_of(picture)) is not None:
        data = found[1]
        close_figure(picture)
    else:
        raise TypeError("sandbox.image() takes PNG, JPEG or SVG as bytes or the path of a file, a figure, or an "
                        f"object that has _repr_png_(), not {type(picture).__name__}")
    kind = kind_of(data)
    if kind is None:
        raise ValueError("sandbox.image() takes PNG, JPEG or SVG")
    give(kind, data)


# ---------------------------------------------------------------- the value of the last expression


def show_rich(value, text):
    """What an object shows besides its repr(), which was printed. The text says all, where it is not the default."""
    try:
        picture = picture_of(value)
    except Exception as error:
        tell_figure(error)
        return
    if picture is not None:
        give(*picture)
        close_figure(value)
        return
    markdown = form(value, "_repr_markdown_")
    if markdown:
        sys.stdout.write(markdown.decode("utf-8", "replace").rstrip("\n") + "\n")
    elif text.startswith("<") and text.endswith(">") and (html := form(value, "_repr_html_")):
        give(b"text/html", html)


# ---------------------------------------------------------------- matplotlib


def tell_figure(error):
    tell(f"A figure could not be rendered: {type(error).__name__}: {error}\n")


def figure_managers():
    return getattr(modules.get("matplotlib._pylab_helpers"), "Gcf", None)


def close_figure(figure):
    """It would be given once more at the end of the turn."""
    try:
        figure_managers().destroy_fig(figure)
    except Exception:                   # none of pyplot's
        pass


def give_figures():
    """Pictures of all open figures that have something in them, which are closed then."""
    managers = figure_managers()
    if managers is None or not managers.figs:
        return
    for manager in managers.get_all_fig_managers():
        try:
            figure = manager.canvas.figure
            if figure.get_children() != [figure.patch]:
                give(b"image/png", png_of_figure(figure))
        except Exception as error:
            tell_figure(error)
        managers.destroy(manager.num)


def adapt_pyplot(pyplot):
    """There is no window that show() could open."""
    def show(*arguments, **keywords):
        give_figures()
    show.__doc__ = pyplot.show.__doc__
    pyplot.show = show


functions.update({f.__name__: f for f in (
    adapt_pyplot, give_figures, give_image, give_result, send_given, show_rich)})
