"""Draws batches of pictures with the demo image model (Picto) in torch, on any device, with the weights of its ONNX files."""
import contextlib
import dataclasses
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'image'))
import scenes
from decoder import Decoder
from diffusion import KEPT, SCALING
from painter import pack
from scene import COLOURS, SHAPES, Draw, Figure, Scene, in_held_out, layout
from text_encoder import TextEncoder
from tokenizer import END, Tokenizer
from unet import CHANNELS, UNet
from wording import Wording, article

STEPS, GUIDANCE = 16, 1.5  # of model_index.json
MAX_DISTANCE = 1.0
SIZES = [(256, 256)] * 8 + [(384, 256), (256, 384)]
# Wire types of protocol buffers, and field numbers of ONNX's messages.
VARINT, BYTES = 0, 2
GRAPH, INITIALIZER = 7, 5
DIMENSIONS, DATA_TYPE, NAME, RAW = 1, 2, 8, 9
TYPES = {1: '<f4', 3: 'i1', 10: '<f2'}


def fields(data):
    """Yields `(number, value)` of the fields of a protocol buffers message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == VARINT:
            yield key >> 3, varint()
            continue
        length = varint() if key & 7 == BYTES else {1: 8, 5: 4}[key & 7]
        yield key >> 3, data[at : at + length]
        at += length


def weights(path):
    """Weights of a graph that `../image/export.py` wrote, by parameter name."""
    graph = next(value for number, value in fields(memoryview(pathlib.Path(path).read_bytes())) if number == GRAPH)
    arrays = {}
    for number, initializer in fields(graph):
        if number == INITIALIZER:
            parts = list(fields(initializer))
            one = dict(parts)
            shape = [value for part, value in parts if part == DIMENSIONS]
            array = numpy.frombuffer(one[RAW], dtype=TYPES[one[DATA_TYPE]]).astype(numpy.float32).reshape(shape)
            arrays[bytes(one[NAME]).decode()] = torch.from_numpy(array)
    kept = {name: value for name, value in arrays.items() if name.endswith('.kept')}
    plain = lambda name: name.replace('parametrizations.', '').removesuffix('.0.kept')
    return {plain(name): value * arrays.get(name.removesuffix('kept') + 'scale', 1) for name, value in kept.items()}


def wanted(draw, wording):
    """Draws a `(scene, prompt)` that names all shapes, colours and the ground."""
    while True:
        if draw.chance(0.6):
            colour, ground = draw.sample(list(COLOURS), 2)
            figure = Figure(draw.choice(SHAPES), colour, draw.choice([None, None, 'large', 'small']))
            scene = Scene([figure], ground)
            if in_held_out(figure, ground) == draw.held_out:
                words = ' '.join(filter(None, [figure.size, colour, figure.shape]))
                return scene, f'{article(words)} on {article(ground)} background'
            continue
        scene = draw.scene()
        if scene.ground and all(figure.shape and figure.colour for figure in scene.figures):
            return scene, wording.prompt(scene)


class Picto:
    def __init__(self, folder, device):
        self.device = device
        self.tokenizer = Tokenizer.load(f'{folder}/tokenizer')
        encoder = TextEncoder(len(self.tokenizer.tokens), self.tokenizer.ids[END])
        self.encoder, self.unet, self.decoder = (
            self.load(module, f'{folder}/{part}/model.onnx')
            for module, part in ((encoder, 'text_encoder'), (UNet(), 'unet'), (Decoder(), 'vae_decoder'))
        )

    def load(self, module, path):
        missing, unexpected = module.load_state_dict(weights(path), strict=False)
        if unexpected or any(not name.startswith('layout.picture.') for name in missing):
            raise ValueError(f'{path} does not hold the weights of {type(module).__name__}')
        return module.to(self.device).eval()

    @torch.no_grad()
    def draw(self, prompts, width, height, noise):
        """Draws pictures `[count, 3, height, width]` in 0..1 by diffusion with guidance."""
        on_device = torch.device(self.device) if self.device != 'cpu' else contextlib.nullcontext()
        with on_device:
            states = [self.encoder(torch.tensor([self.tokenizer.encode(text) for text in texts], device=self.device)) for texts in (prompts, [''])]
            states = torch.cat((states[1].expand_as(states[0]), states[0]))
            latent = torch.randn(len(prompts), CHANNELS, height // 8, width // 8, device=self.device, generator=noise)
            times = torch.linspace(len(KEPT) - 1, 0, STEPS, device='cpu').round().long()
            for step, time in enumerate(times):
                prediction = self.unet(latent.repeat(2, 1, 1, 1), time.to(self.device).expand(2 * len(prompts)), states)
                without, told = prediction.float().chunk(2)
                clean = without + GUIDANCE * (told - without)
                kept = float(KEPT[time])
                following = float(KEPT[times[step + 1]]) if step + 1 < STEPS else 1.0
                latent = following**0.5 * clean + (1 - following) ** 0.5 * (latent - kept**0.5 * clean) / (1 - kept) ** 0.5
            return (self.decoder(latent / SCALING) / 2 + 0.5).clamp(0, 1)


def requests(count, seed, held_out=False):
    """Returns `count` scenes with prompts and sizes. Deterministic for a seed."""
    draw = Draw(seed, held_out)
    wording = Wording(draw)
    return [(*wanted(draw, wording), draw.choice(SIZES)) for _ in range(count)]


def generate(picto, painter, asked, batch=512):
    """Draws the requested scenes into the painter's generated pictures. Returns the pictures that roughly match their scene.

    The image model often fails, and a picture without the figure in its answer would teach the vision model to guess.
    """
    noise = torch.Generator(device=picto.device)
    noise.manual_seed(len(painter.generated))
    draw, pictures = Draw(0), []
    for size in sorted(set(SIZES)):
        group = [(scene, prompt) for scene, prompt, wanted_size in asked if wanted_size == size]
        for start in range(0, len(group), batch):
            part = group[start : start + batch]
            made = painter.fit(picto.draw([prompt for _, prompt in part], *size, noise))
            ideal = [scenes.picture_of(scene.figures, scene.ground, *layout(scene, *size, draw), size) for scene, _ in part]
            good = distance(painter, made, ideal) < MAX_DISTANCE
            for number, (picture, is_good) in enumerate(zip(ideal, good.tolist()), len(painter.generated) + 1):
                picture.number = number
                if is_good:
                    pictures.append(picture)
            painter.generated = torch.cat((painter.generated, made))
    return pictures


def distance(painter, made, ideal):
    """Distance of pictures from the ideal pictures. 1: as far as pictures of the bare ground."""
    right = (painter.paint(torch.from_numpy(pack(ideal, painter.size)), flaws=False) + 1) * 127.5
    bare = [dataclasses.replace(picture, layout=[]) for picture in ideal]
    empty = (painter.paint(torch.from_numpy(pack(bare, painter.size)), flaws=False) + 1) * 127.5
    return (made - right).abs().sum((1, 2, 3)) / (empty - right).abs().sum((1, 2, 3))
