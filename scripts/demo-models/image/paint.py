"""Paints scenes. Each shape is a signed distance function, so that edges are smooth at any size."""
import math

import numpy

from scene import layout


def polygon(x, y, corners):
    """Signed distance to a closed polygon, negative inside."""
    nearest, inside = numpy.full_like(x, numpy.inf), numpy.zeros_like(x, dtype=bool)
    for (ax, ay), (bx, by) in zip(corners, corners[1:] + corners[:1]):
        ex, ey = bx - ax, by - ay
        wx, wy = x - ax, y - ay
        along = numpy.clip((wx * ex + wy * ey) / (ex * ex + ey * ey), 0, 1)
        nearest = numpy.minimum(nearest, (wx - ex * along) ** 2 + (wy - ey * along) ** 2)
        if ay != by:
            inside ^= ((ay > y) != (by > y)) & (wx < ex * wy / ey)
    return numpy.sqrt(nearest) * numpy.where(inside, -1, 1)


def regular(count, radius=1.0, inner=None):
    """Corners of a regular polygon with a horizontal base, or of a star if `inner` (the inner radius) is given."""
    steps = count if inner is None else 2 * count
    return [
        (r * math.sin(2 * math.pi * i / steps), -r * math.cos(2 * math.pi * i / steps))
        for i in range(steps)
        for r in [radius if inner is None or i % 2 == 0 else inner]
    ]


def heart(steps=28):
    """The usual heart curve, scaled to a radius of about 1."""
    points = []
    for i in range(steps):
        t = 2 * math.pi * i / steps
        px = 16 * math.sin(t) ** 3
        py = 13 * math.cos(t) - 5 * math.cos(2 * t) - 2 * math.cos(3 * t) - math.cos(4 * t)
        points.append((px / 16.5, -(py + 2.5) / 16.5))
    return points


SQUARE = [(-0.82, -0.82), (0.82, -0.82), (0.82, 0.82), (-0.82, 0.82)]
TRIANGLE = [(0.0, -0.92), (1.0, 0.78), (-1.0, 0.78)]
DIAMOND = [(0.0, -1.0), (0.72, 0.0), (0.0, 1.0), (-0.72, 0.0)]
ARROW = [(-0.95, -0.28), (0.1, -0.28), (0.1, -0.75), (0.98, 0.0), (0.1, 0.75), (0.1, 0.28), (-0.95, 0.28)]
A, B = 0.32, 0.95
CROSS = [(-A, -B), (A, -B), (A, -A), (B, -A), (B, A), (A, A), (A, B), (-A, B), (-A, A), (-B, A), (-B, -A), (-A, -A)]
STAR = regular(5, 1.0, 0.44)
HEART = heart()

DISTANCES = {
    'circle': lambda x, y: numpy.hypot(x, y) - 0.92,
    'ring': lambda x, y: numpy.abs(numpy.hypot(x, y) - 0.74) - 0.22,
    'crescent': lambda x, y: numpy.maximum(numpy.hypot(x + 0.15, y) - 0.95, 0.8 - numpy.hypot(x - 0.3, y)),
    'square': lambda x, y: polygon(x, y, SQUARE),
    'triangle': lambda x, y: polygon(x, y, TRIANGLE),
    'diamond': lambda x, y: polygon(x, y, DIAMOND),
    'star': lambda x, y: polygon(x, y, STAR),
    'heart': lambda x, y: polygon(x, y, HEART),
    'cross': lambda x, y: polygon(x, y, CROSS),
    'arrow': lambda x, y: polygon(x, y, ARROW),
}


def paint_layout(placed, ground, width, height, left=0, top=0, right=None, bottom=None):
    """Paints a window of the picture as float32 `[3, rows, columns]` in 0..1. The window's edges are in pixels."""
    right, bottom = right or width, bottom or height
    unit = min(width, height) / 2
    columns = (numpy.arange(left, right, dtype=numpy.float32) + 0.5 - width / 2) / unit
    rows = (numpy.arange(top, bottom, dtype=numpy.float32) + 0.5 - height / 2) / unit
    picture = numpy.empty((3, len(rows), len(columns)), dtype=numpy.float32)
    picture[:] = numpy.array(ground, dtype=numpy.float32)[:, None, None]
    for shape, colour, x, y, radius, turn in placed:
        reach = radius * 1.3 + 2 / unit
        c0, c1 = numpy.searchsorted(columns, [x - reach, x + reach])
        r0, r1 = numpy.searchsorted(rows, [y - reach, y + reach])
        if c0 == c1 or r0 == r1:
            continue
        dx, dy = numpy.meshgrid((columns[c0:c1] - x) / radius, (rows[r0:r1] - y) / radius)
        cos, sin = math.cos(turn), math.sin(turn)
        distance = DISTANCES[shape](cos * dx + sin * dy, cos * dy - sin * dx) * radius * unit
        cover = numpy.clip(0.5 - distance, 0, 1)
        part = picture[:, r0:r1, c0:c1]
        part += cover * (numpy.array(colour, dtype=numpy.float32)[:, None, None] - part)
    return picture


def paint(scene, width, height, draw):
    placed, ground = layout(scene, width, height, draw)
    return paint_layout(placed, ground, width, height)


def thumbnail(scene, width, height, draw, fine=3):
    """The picture of `width` by `height` pixels, averaged over squares of 8 by 8: the latents that the denoiser learns."""
    placed, ground = layout(scene, width, height, draw)
    columns, rows = width // 8, height // 8
    picture = paint_layout(placed, ground, columns * fine, rows * fine)
    return picture.reshape(3, rows, fine, columns, fine).mean((2, 4))
