"""Contents of training pictures: figures on a ground, or no figures, and the picture's format.

Half of the scenes come from the demo image model (`../image/scene.py`); the others have up to four figures at any place.
Combinations of colour, shape and ground that are held out for the image model are also held out here.
"""
import dataclasses
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'image'))
import scene as image_scene
from scene import COLOURS, PLACES, SHAPES, in_held_out

MAX_FIGURES = 4
COUNT_WEIGHTS = [4, 18, 30, 27, 21]  # of zero to four figures
RATIOS = [(4, 3), (3, 4), (16, 9), (9, 16), (3, 2), (2, 3), (2, 1), (1, 2)]
# Other shades with the same name, from CSS and common palettes.
SHADES = {
    'red': [(255, 0, 0), (220, 20, 60), (239, 68, 68), (200, 0, 0)],
    'orange': [(255, 165, 0), (255, 140, 0), (249, 115, 22)],
    'yellow': [(255, 255, 0), (255, 215, 0), (250, 204, 21)],
    'green': [(0, 128, 0), (0, 255, 0), (34, 197, 94), (0, 170, 60), (34, 139, 34)],
    'blue': [(0, 0, 255), (59, 130, 246), (30, 144, 255), (0, 0, 128), (65, 105, 225)],
    'purple': [(128, 0, 128), (168, 85, 247), (148, 0, 211), (102, 51, 153)],
    'pink': [(255, 192, 203), (255, 105, 180), (236, 72, 153)],
    'brown': [(139, 69, 19), (165, 42, 42), (101, 67, 33)],
    'black': [(0, 0, 0), (25, 25, 30)],
    'white': [(255, 255, 255), (245, 245, 245)],
    'gray': [(128, 128, 128), (107, 114, 128), (160, 160, 160)],
    'cyan': [(0, 255, 255), (6, 182, 212), (64, 224, 208), (0, 128, 128)],
}


@dataclasses.dataclass
class Seen:
    """A figure with the attributes that answers name."""

    shape: str
    colour: str
    place: str


@dataclasses.dataclass
class Picture:
    """`figures` in reading order. `ground` is None for pictures without anything that the model knows.

    `layout`: (shape, rgb, x, y, radius, turn) of each figure, as in scene.py. `size`: width and height, any unit.
    `number`: number of a picture that the image model drew, from 1; 0 for pictures that painter.py paints.
    """

    figures: list
    ground: str | None
    layout: list
    rgb: list
    size: tuple
    framed: bool = False
    number: int = 0


def draw_picture(draw):
    width, height = draw_size(draw)
    framed = draw.chance(0.08)
    if draw.chance(0.04):
        return Picture([], None, [], [0.0, 0.0, 0.0], (width, height), framed)
    while True:
        if draw.chance(0.5):
            names, ground, layout, rgb = image_model_scene(draw, width, height)
        else:
            names, ground, layout, rgb = free_scene(draw, width, height)
        held_out = any(in_held_out(figure, ground) for figure in names)
        if held_out == draw.held_out:
            break
    if draw.chance(0.35):
        rgb = shade(ground, draw)
        layout = [(part[0], shade(figure.colour, draw), *part[2:]) for figure, part in zip(names, layout)]
    picture = picture_of(names, ground, layout, rgb, (width, height))
    picture.framed = framed
    return picture


def shade(colour, draw):
    return [min(1.0, max(0.0, part / 255 + draw.uniform(-0.02, 0.02))) for part in draw.choice(SHADES[colour])]


def picture_of(names, ground, layout, rgb, size, number=0):
    half_width, half_height = size[0] / min(size), size[1] / min(size)
    seen = [
        (x + 0.5 * y, Seen(figure.shape, figure.colour, place_of(x / half_width, y / half_height)))
        for figure, (_, _, x, y, _, _) in zip(names, layout)
    ]
    seen.sort(key=lambda item: item[0])
    return Picture([figure for _, figure in seen], ground, layout, rgb, size, number=number)


def draw_size(draw):
    if draw.chance(0.6):
        return 256, 256
    if draw.chance(0.5):
        return draw.choice(RATIOS)
    return 1.0, draw.uniform(0.5, 2.0)


def image_model_scene(draw, width, height):
    scene = draw.pair() if draw.chance(0.5) else draw.single()
    for figure in scene.figures:
        figure.shape = figure.shape or draw.choice(SHAPES)
    scene.ground = scene.ground or other_colour(draw, [figure.colour for figure in scene.figures])
    for figure in scene.figures:
        figure.colour = figure.colour or other_colour(draw, [scene.ground])
    layout, rgb = image_scene.layout(scene, width, height, draw)
    return scene.figures, scene.ground, layout, rgb


def other_colour(draw, taken):
    return draw.choice([name for name in COLOURS if name not in taken])


def free_scene(draw, width, height):
    """Figures at random places that do not overlap. One in three repeats the previous figure."""
    half_width, half_height = width / min(width, height), height / min(width, height)
    ground = draw.choice(list(COLOURS))
    names, layout = [], []
    for _ in range(draw.choices(range(MAX_FIGURES + 1), COUNT_WEIGHTS)[0]):
        if names and draw.chance(0.35):
            figure = names[-1]
        else:
            figure = image_scene.Figure(draw.choice(SHAPES), other_colour(draw, [ground]))
        for _ in range(20):
            radius = draw.uniform(0.17, 0.42)
            x = draw.uniform(radius - half_width, half_width - radius)
            y = draw.uniform(radius - half_height, half_height - radius)
            if all((x - u) ** 2 + (y - v) ** 2 > (1.08 * (radius + other)) ** 2 for _, _, u, v, other, _ in layout):
                names.append(figure)
                layout.append((figure.shape, image_scene.shade(figure.colour, draw), x, y, radius, draw.gauss(0, 0.07)))
                break
    return names, ground, layout, image_scene.shade(ground, draw)


def place_of(x, y):
    """Name of a place from coordinates in -1..1, as scene.py names it."""
    side = lambda value: (value > 1 / 3) - (value < -1 / 3)
    return NAMES[side(x), side(y)]


NAMES = {sides: name for name, sides in PLACES.items()}
