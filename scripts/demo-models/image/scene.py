"""Scenes of the demo image model's training data: one or two coloured shapes on a coloured ground.

A scene names places and sizes in words (`left`, `small`); `layout` converts the words to coordinates. A checksum decides
which combinations of shape, colour and ground are held out from training, so that the evaluation requests pictures that
training has never shown.
"""
import dataclasses
import random
import zlib

COLOURS = {
    'red': (222, 30, 36),
    'orange': (247, 140, 20),
    'yellow': (250, 222, 45),
    'green': (32, 152, 62),
    'blue': (32, 72, 214),
    'purple': (128, 42, 170),
    'pink': (246, 132, 184),
    'brown': (120, 72, 32),
    'black': (16, 16, 18),
    'white': (250, 250, 250),
    'gray': (130, 130, 132),
    'cyan': (40, 200, 222),
}
SHAPES = ('circle', 'square', 'triangle', 'star', 'heart', 'ring', 'cross', 'diamond', 'crescent', 'arrow')
SIZES = ('small', 'large')
PLACES = {
    'center': (0, 0),
    'left': (-1, 0),
    'right': (1, 0),
    'top': (0, -1),
    'bottom': (0, 1),
    'top left': (-1, -1),
    'top right': (1, -1),
    'bottom left': (-1, 1),
    'bottom right': (1, 1),
}
OPPOSITE = {'left': 'right', 'right': 'left', 'top': 'bottom', 'bottom': 'top'}
HELD_OUT_PART = 8  # one in 8 combinations of shape, colour and ground is held out


@dataclasses.dataclass
class Figure:
    """`None`: the prompt does not name the attribute. `place` of a figure in a pair is never `None`."""

    shape: str | None
    colour: str | None
    size: str | None = None
    place: str | None = None


@dataclasses.dataclass
class Scene:
    figures: list
    ground: str | None
    relation: str | None = None  # how the prompt places the second figure, see wording.py


def in_held_out(figure, ground):
    return zlib.crc32(f'{figure.colour} {figure.shape} {ground}'.encode()) % HELD_OUT_PART == 0


class Draw(random.Random):
    def __init__(self, seed, held_out=False):
        super().__init__(seed)
        self.held_out = held_out

    def chance(self, probability):
        return self.random() < probability

    def scene(self):
        while True:
            scene = self.pair() if self.chance(0.4) else self.single()
            complete = [figure for figure in scene.figures if figure.shape and figure.colour and scene.ground]
            if self.held_out:
                if len(complete) == len(scene.figures) and any(in_held_out(figure, scene.ground) for figure in complete):
                    return scene
            elif not any(in_held_out(figure, scene.ground) for figure in complete):
                return scene

    def figure(self, taken, vague):
        colour = self.choice([name for name in COLOURS if name not in taken])
        figure = Figure(self.choice(SHAPES), colour, self.choice(SIZES) if self.chance(0.35) else None)
        if self.chance(vague):
            figure.colour = None
        elif self.chance(vague):
            figure.shape = None
        return figure

    def single(self):
        ground = None if self.chance(0.1) else self.choice(list(COLOURS))
        figure = self.figure([ground], 0.05)
        if self.chance(0.4):
            figure.place = self.choice(list(PLACES))
        return Scene([figure], ground)

    def pair(self):
        ground = None if self.chance(0.1) else self.choice(list(COLOURS))
        first, second = self.figure([ground], 0), self.figure([ground], 0)
        if self.chance(0.1):
            second = dataclasses.replace(first)
            scene = Scene([first, second], ground, 'two')
            first.place, second.place = 'left', 'right'
            return scene
        relation = self.choice(['and', 'and', 'beside', 'left', 'right', 'top', 'bottom', 'places', 'places'])
        if relation in OPPOSITE:
            first.place, second.place = relation, OPPOSITE[relation]
        elif relation == 'places':
            first.place = self.choice([place for place in PLACES if place != 'center'])
            x, y = PLACES[first.place]
            second.place = next(place for place in PLACES if PLACES[place] == (-x, -y))
        else:
            first.place, second.place = 'left', 'right'
        return Scene([first, second], ground, relation)


def layout(scene, width, height, draw):
    """Returns `[(shape, rgb, x, y, radius, turn)]` and the ground's rgb. Coordinates are -1..1 along the shorter side, 0 in the middle."""
    half_width, half_height = width / min(width, height), height / min(width, height)
    ground = scene.ground or draw.choice([name for name in COLOURS if name not in [f.colour for f in scene.figures]])
    taken = [ground] + [figure.colour for figure in scene.figures]
    placed = []
    for figure in scene.figures:
        colour = figure.colour or draw.choice([name for name in COLOURS if name not in taken])
        x, y = PLACES[figure.place or 'center']
        corner, middle = x != 0 and y != 0, x == 0 and y == 0
        low, high = {'small': (0.2, 0.24), 'large': (0.74, 0.82), None: (0.46, 0.54)}[figure.size]
        if not middle:
            low, high = {'small': (0.18, 0.22), 'large': (0.46, 0.5), None: (0.34, 0.39)}[figure.size]
            if corner:
                low, high = min(low, 0.42), min(high, 0.48)
        radius = draw.uniform(low, high)
        spread = 0.02
        centre_x = x * half_width * 0.5 + draw.uniform(-spread, spread)
        centre_y = y * half_height * 0.5 + draw.uniform(-spread, spread)
        limit_x, limit_y = max(0, half_width - radius - 0.02), max(0, half_height - radius - 0.02)
        placed.append(
            (
                figure.shape or draw.choice(SHAPES),
                shade(colour, draw),
                min(limit_x, max(-limit_x, centre_x)),
                min(limit_y, max(-limit_y, centre_y)),
                radius,
                draw.uniform(-0.02, 0.02),
            )
        )
    return placed, shade(ground, draw)


def shade(colour, draw):
    return [min(1.0, max(0.0, part / 255 + draw.uniform(-0.02, 0.02))) for part in COLOURS[colour]]
