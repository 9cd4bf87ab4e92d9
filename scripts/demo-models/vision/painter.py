"""Paints batches of training pictures with torch, on any device, with the artefacts of generated, scaled and compressed pictures.

Signed distances of each shape are computed once, as textures, so that a figure costs one texture look-up per pixel.
"""
import math

import numpy
import torch
import torch.nn.functional as F

from scenes import MAX_FIGURES, SHAPES
from paint import DISTANCES

TEXTURE, REACH = 160, 1.6  # samples per side; a texture covers -REACH..REACH, in radii
PADDING = 127 / 255  # llama.cpp pads janus_pro's pictures to squares with this gray
# Luminance table of JPEG (ITU-T T.81, annex K.1), used for all three parts.
JPEG_STEPS = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100,
    103, 99,
]


def pack(pictures, size):
    """Encodes a batch for `Painter.paint` as float32 `[count, columns]`."""
    rows = numpy.zeros((len(pictures), COLUMNS), dtype=numpy.float32)
    for row, picture in zip(rows, pictures):
        width, height = picture.size
        scale = size / max(width, height)
        row[:3] = picture.rgb
        row[3:5] = min(size, math.ceil(width * scale - 1e-6)), min(size, math.ceil(height * scale - 1e-6))
        row[5:8] = picture.ground is None, picture.framed, picture.number
        for index, (shape, rgb, x, y, radius, turn) in enumerate(picture.layout):
            at = HEAD + index * FIGURE
            row[at : at + FIGURE] = 1, SHAPES.index(shape), *rgb, x, y, radius, turn
    return rows


HEAD, FIGURE = 8, 9
COLUMNS = HEAD + MAX_FIGURES * FIGURE


class Painter:
    def __init__(self, size, device, seed=0):
        self.size, self.device = size, device
        self.generated = torch.empty(0, 3, size, size, dtype=torch.uint8, device=device)
        self.random = torch.Generator(device=device)
        self.random.manual_seed(seed)
        axis = (numpy.arange(TEXTURE) + 0.5) / TEXTURE * 2 - 1
        x, y = numpy.meshgrid(axis * REACH, axis * REACH)
        textures = numpy.stack([DISTANCES[name](x, y) for name in SHAPES]).astype(numpy.float32)
        self.textures = torch.from_numpy(textures)[:, None].to(device)
        pixel = torch.arange(size, device=device) + 0.5
        self.row, self.column = pixel[None, :, None], pixel[None, None, :]
        frequency = torch.arange(8)
        cosines = torch.cos((2 * frequency[None] + 1) * frequency[:, None] * math.pi / 16) / 2
        cosines[0] /= math.sqrt(2)
        self.cosines = cosines.to(device)
        self.steps = torch.tensor(JPEG_STEPS, device=device).float().view(8, 8) / 255

    def uniform(self, low, high, *shape):
        return torch.rand(*shape, device=self.device, generator=self.random) * (high - low) + low

    def normal(self, *shape):
        return torch.randn(*shape, device=self.device, generator=self.random)

    def some(self, probability, count):
        """Random mask of pictures `[count, 1, 1, 1]`: 1 with the probability, else 0."""
        return (self.uniform(0, 1, count, 1, 1, 1) < probability).float()

    @torch.no_grad()
    def paint(self, rows, flaws=True):
        """Paints pictures `[count, 3, size, size]` in -1..1. `flaws`: adds blur, noise, colour shifts and compression artefacts."""
        rows = rows.to(self.device, non_blocking=True)
        column = lambda index: rows[:, index, None, None]
        width, height = column(3), column(4)
        left, top = ((self.size - width) / 2).floor(), ((self.size - height) / 2).floor()
        box = (self.column > left) & (self.column < left + width) & (self.row > top) & (self.row < top + height)
        border = column(6) * self.uniform(0.02, 0.1, len(rows), 1, 1) * torch.minimum(width, height)
        bar = border * (self.uniform(0, 1, len(rows), 1, 1) < 0.5) * self.uniform(0.5, 1.5, len(rows), 1, 1)
        x0, y0, x1, y1 = left + border, top + border + bar, left + width - border, top + height - border
        unit = torch.minimum(x1 - x0, y1 - y0) / 2
        x, y = (self.column - (x0 + x1) / 2) / unit, (self.row - (y0 + y1) / 2) / unit
        picture = rows[:, :3, None, None].expand(-1, -1, self.size, self.size).clone()
        edge = self.uniform(0.8, 2.2, len(rows), 1, 1) * (0.5 if not flaws else 1)
        for index in range(MAX_FIGURES):
            stretch = self.uniform(0.9, 1.1, len(rows), 1, 1) if flaws else 1
            numbers = rows[:, HEAD + index * FIGURE : HEAD + (index + 1) * FIGURE]
            cover, colour = self.figure(numbers, x, y, unit, edge, stretch)
            picture += cover * (colour - picture)
        unknown = rows[:, 5].nonzero()[:, 0]
        if len(unknown):
            picture[unknown] = self.unknown(len(unknown))
        if flaws:
            picture = self.flawed(picture)
        inside = ((self.column > x0) & (self.column < x1) & (self.row > y0) & (self.row < y1))[:, None]
        picture = torch.where(inside, picture, self.frame(len(rows)))
        numbers = rows[:, 7].long()
        drawn = numbers.nonzero()[:, 0]
        if len(drawn):
            loaded = self.generated[numbers[drawn] - 1].float() / 255
            picture[drawn] = torch.where(self.some(0.4, len(drawn)) > 0, self.flawed(loaded), loaded) if flaws else loaded
        if flaws:
            picture = self.compressed(picture, self.some(0.3, len(rows)))
        picture = torch.where(box[:, None], picture.clamp(0, 1), torch.full_like(picture, PADDING))
        return (picture * 255).round() / 127.5 - 1

    def fit(self, pictures):
        """Scales and pads pictures `[count, 3, height, width]` in 0..1 to the square as llama.cpp does, in 8 bit."""
        height, width = pictures.shape[2:]
        scale = self.size / max(height, width)
        size = math.ceil(height * scale - 1e-6), math.ceil(width * scale - 1e-6)
        small = F.interpolate((pictures * 255).round(), size, mode='bicubic', antialias=True).round().clamp(0, 255)
        square = torch.full((len(pictures), 3, self.size, self.size), 127, dtype=torch.uint8, device=pictures.device)
        top, left = (self.size - size[0]) // 2, (self.size - size[1]) // 2
        square[:, :, top : top + size[0], left : left + size[1]] = small.byte()
        return square

    def figure(self, numbers, x, y, unit, edge, stretch):
        present, shape, u, v, radius, turn = (numbers[:, index, None, None] for index in (0, 1, 5, 6, 7, 8))
        radius = radius.clamp(min=0.01)
        dx, dy = (x - u) / radius * stretch, (y - v) / radius / stretch
        cos, sin = turn.cos(), turn.sin()
        places = torch.stack((cos * dx + sin * dy, cos * dy - sin * dx), -1) / REACH
        textures = self.textures[shape.long().flatten()]
        distance = F.grid_sample(textures, places, padding_mode='border', align_corners=False)[:, 0] * radius * unit
        cover = (0.5 - distance / edge).clamp(0, 1) * present
        return cover[:, None], numbers[:, 2:5, None, None]

    def cloud(self, count, cells, parts=3):
        """Smooth noise with `cells` cells on a side."""
        grid = self.normal(count, parts, cells, cells)
        return F.interpolate(grid, (self.size, self.size), mode='bilinear', align_corners=False)

    def unknown(self, count):
        """Pictures without a figure: clouds, stripes and lined pages."""
        clouds = 0.5 + sum(self.cloud(count, cells) * self.uniform(0, 0.3, count, 1, 1, 1) for cells in (3, 6, 14, 40))
        paper, ink = self.uniform(0, 1, count, 3, 1, 1), self.uniform(0, 1, count, 3, 1, 1)
        pitch = self.uniform(5, 14, count, 1, 1, 1)
        line = ((self.row[:, None] / pitch) % 1 < 0.5).float()
        words = F.interpolate(self.normal(count, 1, 24, 40), (self.size, self.size), mode='nearest').gt(-0.3).float()
        page = paper + line * words * (ink - paper)
        return torch.where(self.some(0.5, count) > 0, clouds, page)

    def frame(self, count):
        gray = self.uniform(0, 1, count, 1, 1, 1).round() * 0.85 + self.uniform(0, 0.15, count, 1, 1, 1)
        return (gray + self.uniform(-0.05, 0.05, count, 3, 1, 1)).expand(-1, -1, self.size, self.size)

    def flawed(self, picture):
        count = len(picture)
        strength = lambda probability, high: self.some(probability, count) * self.uniform(0, high, count, 1, 1, 1)
        picture = self.coarse(picture, self.some(0.25, count))
        soft = F.avg_pool2d(F.pad(picture, (1, 1, 1, 1), mode='replicate'), 3, 1)
        softer = F.avg_pool2d(F.pad(picture, (2, 2, 2, 2), mode='replicate'), 5, 1)
        # Positive strength blurs; negative strength sharpens, with halos.
        picture = picture + (soft - picture) * (self.some(0.4, count) * self.uniform(-0.6, 1, count, 1, 1, 1))
        picture = picture + (softer - picture) * strength(0.15, 0.8)
        picture = picture + self.cloud(count, 12) * strength(0.3, 0.04) + self.cloud(count, 32) * strength(0.3, 0.05)
        picture = picture + self.normal(*picture.shape) * strength(0.3, 0.06)
        gain, shift = 1 + 0.04 * self.normal(count, 3, 1, 1), 0.015 * self.normal(count, 3, 1, 1)
        contrast = 1 + 0.05 * self.normal(count, 1, 1, 1)
        return ((picture * gain + shift - 0.5) * contrast + 0.5).clamp(0, 1)

    def coarse(self, picture, chosen):
        """Makes the chosen pictures look enlarged from small ones."""
        cells = int(self.uniform(32, 72, 1).item())
        small = F.interpolate(picture, (cells, cells), mode='area')
        large = F.interpolate(small, picture.shape[2:], mode='bilinear', align_corners=False)
        return torch.where(chosen > 0, large, picture)

    def compressed(self, picture, chosen):
        """Adds the rounding of JPEG's cosine transform to the chosen pictures."""
        count, parts, height, width = picture.shape
        blocks = picture.view(count, parts, height // 8, 8, width // 8, 8).transpose(3, 4)
        step = self.steps * self.uniform(0.2, 1.6, count, 1, 1, 1, 1, 1)
        waves = ((self.cosines @ blocks @ self.cosines.T) / step).round() * step
        rounded = (self.cosines.T @ waves @ self.cosines).transpose(3, 4).reshape(picture.shape)
        return torch.where(chosen > 0, rounded, picture)
