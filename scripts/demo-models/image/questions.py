"""Prints held-out prompts with the expected scenes, one JSON object per line. See README.md."""
import argparse
import dataclasses
import json

from scene import COLOURS, SHAPES, Draw, Figure, Scene, in_held_out
from wording import Wording, article

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--count', type=int, default=100)
parser.add_argument('--seed', type=int, default=9)
parser.add_argument('--plain', action='store_true', help='"a red circle on a blue background" and the like, of combinations that were trained')
options = parser.parse_args()
draw = Draw(options.seed, held_out=not options.plain)
wording = Wording(draw)


def plain(index):
    while True:
        colour, ground = draw.sample(list(COLOURS), 2)
        figure = Figure(SHAPES[index % len(SHAPES)], colour, 'large' if draw.chance(0.5) else None)
        if not in_held_out(figure, ground):
            prompt = f'{article(" ".join(filter(None, [figure.size, colour, figure.shape])))} on {article(ground)} background'
            return Scene([figure], ground), prompt


for index in range(options.count):
    if options.plain:
        scene, prompt = plain(index)
    else:
        scene = draw.scene()
        prompt = wording.prompt(scene)
    print(json.dumps({'prompt': prompt, **dataclasses.asdict(scene)}))
