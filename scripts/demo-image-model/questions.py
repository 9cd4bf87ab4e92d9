"""Prints held-out prompts with what their pictures must show, one JSON object a line. See README.md."""
import argparse
import dataclasses
import json

from scene import Draw
from wording import Wording

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--count', type=int, default=100)
parser.add_argument('--seed', type=int, default=9)
options = parser.parse_args()
draw = Draw(options.seed, held_out=True)
wording = Wording(draw)
for _ in range(options.count):
    scene = draw.scene()
    print(json.dumps({'prompt': wording.prompt(scene), **dataclasses.asdict(scene)}))
