"""Writes held-out pictures, and questions about them in `questions.jsonl`, to a folder. See README.md."""
import argparse
import json
import pathlib
import struct
import sys
import zlib

import numpy
import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
from answers import KINDS, Asking
from chats import IMAGE, Chats
from paint import paint_layout
from painter import Painter, pack
from scenes import draw_picture

SIDE = 256  # pixels of the longer side of a picture without flaws
KNOWN = [kind for kind, _ in KINDS]


def write_png(path, picture):
    """`picture`: uint8 `[rows, columns, 3]`."""
    rows, columns, _ = picture.shape
    lines = numpy.concatenate((numpy.zeros((rows, 1), dtype=numpy.uint8), picture.reshape(rows, -1)), 1)
    chunk = lambda name, data: struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    header = struct.pack('>IIBBBBB', columns, rows, 8, 2, 0, 0, 0)
    path.write_bytes(
        b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', zlib.compress(lines.tobytes())) + chunk(b'IEND', b'')
    )


class Writer:
    def __init__(self, folder, seed):
        self.folder, self.count = pathlib.Path(folder), 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self.chats = Chats(seed, held_out=True)
        self.draw = self.chats.draw
        self.painter = Painter(128, 'cpu', seed)

    def save(self, picture):
        """Saves a picture, every second with the artefacts of training pictures."""
        if picture.ground is None or self.count % 2:
            pixels = (self.painter.paint(torch.from_numpy(pack([picture], 128)))[0] + 1) * 127.5
            pixels = pixels.round().byte().numpy()
        else:
            width, height = (round(part * SIDE / max(picture.size)) for part in picture.size)
            pixels = (paint_layout(picture.layout, picture.rgb, width, height) * 255).round().astype(numpy.uint8)
        name = f'{self.count:04}.png'
        write_png(self.folder / name, numpy.ascontiguousarray(pixels.transpose(1, 2, 0)))
        self.count += 1
        return name

    def known(self):
        while True:
            picture = draw_picture(self.draw)
            if picture.ground:
                return picture

    def one(self, kind):
        """A question of one kind about one picture."""
        picture = self.known()
        question, answer = getattr(Asking(self.draw, picture), kind)()
        return self.chats.exchange(self.chats.with_images(self.chats.noisy(question), 1), answer), [picture]

    def unknown(self):
        while True:
            picture = draw_picture(self.draw)
            if picture.ground is None:
                question, answer = Asking(self.draw, picture).ask()
                return self.chats.exchange(self.chats.with_images(question, 1), answer), [picture]

    def question(self, skill):
        if skill in KNOWN:
            return self.one(skill)
        if skill == 'unknown':
            return self.unknown()
        messages, pictures = self.chats.chat({'several turns': 1, 'two pictures': 2, 'no picture': 0}[skill])
        return messages, pictures

    def line(self, skill):
        messages, pictures = self.question(skill)
        names = iter([self.save(picture) for picture in pictures])
        content = lambda text: [
            part for index, piece in enumerate(text.split(IMAGE)) for part in ([{'image': next(names)}] if index else []) + ([{'text': piece}] if piece else [])
        ]
        shown = [{'role': role, 'content': content(text)} for role, text in messages[:-1]]
        return {'skill': skill, 'messages': shown, 'expected': messages[-1][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folder')
    parser.add_argument('--count', type=int, default=50, help='questions of each kind')
    parser.add_argument('--seed', type=int, default=20_000)
    options = parser.parse_args()
    writer = Writer(options.folder, options.seed)
    with open(writer.folder / 'questions.jsonl', 'w') as file:
        for skill in [*KNOWN, 'unknown', 'several turns', 'two pictures', 'no picture']:
            for _ in range(options.count):
                file.write(json.dumps(writer.line(skill)) + '\n')


if __name__ == '__main__':
    main()
