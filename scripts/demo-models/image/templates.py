"""Prints the template of each shape for `recognize.ts`: a mask of 24 by 24 characters that fills the shape's bounding box."""
import json

import numpy

from paint import DISTANCES

SIDE, FINE = 24, 20
axis = (numpy.arange(800) + 0.5) / 400 - 1
x, y = numpy.meshgrid(axis * 1.25, axis * 1.25)
templates = {}
for name, distance in DISTANCES.items():
    inside = distance(x, y) < 0
    rows, columns = numpy.flatnonzero(inside.any(1)), numpy.flatnonzero(inside.any(0))
    pick_row = numpy.linspace(rows[0], rows[-1], SIDE * FINE).round().astype(int)
    pick_column = numpy.linspace(columns[0], columns[-1], SIDE * FINE).round().astype(int)
    box = inside[numpy.ix_(pick_row, pick_column)].reshape(SIDE, FINE, SIDE, FINE).mean((1, 3))
    templates[name] = [''.join('#' if part > 0.5 else '.' for part in row) for row in box]
print(json.dumps(templates, indent=2))
