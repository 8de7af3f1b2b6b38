"""What a picture must be like, whatever it shows."""

from __future__ import annotations

import itertools
import struct
import zlib

import numpy as np


def look_at(figure):
    """Nothing is cut off, empty or covered: on the page, of axes, of their labels and legends."""
    figure.canvas.draw()
    page, renderer = figure.bbox, figure.canvas.get_renderer()
    assert figure.axes, "something is drawn"
    for ax in figure.axes:
        box = ax.get_window_extent(renderer)
        assert box.width > 5 and box.height > 5
        whole = ax.get_tightbbox(renderer)
        room = 2 if ax.name != "3d" else 60
        assert whole.x0 >= page.x0 - room and whole.x1 <= page.x1 + room, "nothing is cut off at the sides"
        assert whole.y0 >= page.y0 - room and whole.y1 <= page.y1 + room, "nothing is cut off above or below"
        drawn = [*ax.lines, *ax.patches, *ax.collections, *ax.images, *ax.texts]
        assert drawn or not ax.axison, "no axes are empty"
        words = ax.get_legend()
        if words is not None:
            covered = words.get_window_extent(renderer)
            assert not any(
                covered.overlaps(other.get_window_extent(renderer)) for other in figure.axes
            ), "a legend lies beside the data"  # fmt: skip
            assert not covered.overlaps(ax.xaxis.label.get_window_extent(renderer))
            assert not covered.overlaps(ax.title.get_window_extent(renderer)) or not ax.title.get_text()
        if ax.name != "3d" and ax.axison:
            for axis in (ax.xaxis, ax.yaxis):
                _labels_apart(axis, renderer)


def _labels_apart(axis, renderer):
    low, high = sorted(axis.get_view_interval())
    labels = [
        label for place, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=False)
        if low <= place <= high and label.get_text() and label.get_rotation() in (0, 90)
    ]  # fmt: skip
    boxes = [label.get_window_extent(renderer).shrunk(0.98, 0.9) for label in labels]
    assert not any(one.overlaps(other) for one, other in itertools.pairwise(boxes)), "labels of ticks are apart"


def read_png(data):
    """Shape and pixels of an 8-bit grey PNG, with its checksums verified."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 0, 0, 0, 0]
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def overlaps(figure):
    """Pairs of texts of a figure that cover each other, and texts that are cut off by the page, as sentences."""
    import matplotlib.text
    from matplotlib.transforms import Bbox

    figure.canvas.draw()
    renderer, page = figure.canvas.get_renderer(), figure.bbox
    hidden = set()
    for ax in figure.axes:
        for place, axis in enumerate((ax.xaxis, ax.yaxis) if ax.name != "3d" else ()):
            low, high = sorted(axis.get_view_interval())
            room = 1e-9 * (high - low)
            labels = [*axis.get_majorticklabels(), *axis.get_minorticklabels()]
            hidden |= {one for one in labels if not low - room <= one.get_position()[place] <= high + room}
            hidden |= set() if ax.axison else {*labels, axis.label, axis.get_offset_text()}
    boxes = [(text, _turned(text, renderer)) for text in figure.findobj(matplotlib.text.Text)
             if text not in hidden and text.get_visible() and text.get_text().strip()]  # fmt: skip
    unique = list({id(text): (text, box) for text, box in boxes}.values())
    said = [
        f"{one.get_text()!r} and {other.get_text()!r}"
        for (one, a), (other, b) in itertools.combinations(unique, 2) if _meet(a, b)
    ]
    room = Bbox.from_extents(page.x0 - 1, page.y0 - 1, page.x1 + 1, page.y1 + 1)
    for text, corners in unique:
        if not all(room.contains(*corner) for corner in corners):
            said.append(f"{text.get_text()!r} is cut off")
    return said


def _turned(text, renderer):
    """The corners of a text, turned as it is."""
    import matplotlib.transforms as mtransforms

    angle = text.get_rotation()
    if angle % 90 == 0:
        box = text.get_window_extent(renderer)
        return np.array([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])
    text.set_rotation(0)
    box = text.get_window_extent(renderer)
    text.set_rotation(angle)
    x, y = text.get_transform().transform(text.get_unitless_position())
    turn = mtransforms.Affine2D().rotate_deg_around(x, y, angle)
    return turn.transform([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])


def _meet(one, other):
    """Whether two turned boxes share more than an edge: no line separates them."""
    for corners in (one, other):
        for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            normal = np.array([end[1] - start[1], start[0] - end[0]])
            size = np.hypot(*normal)
            if size == 0:
                continue
            a, b = one @ (normal / size), other @ (normal / size)
            if min(a.max(), b.max()) - max(a.min(), b.min()) < 0.75:  # of a pixel
                return False
    return True
