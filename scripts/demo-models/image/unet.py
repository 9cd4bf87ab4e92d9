"""Denoiser: a small U-Net that predicts the clean latents from noised latents, timestep and prompt states.

The network works at a half and a quarter of the latents' resolution, so heights and widths are multiples of 4. Positions are
inputs. The first prompt state encodes the whole scene: it is projected onto the picture, and scales and shifts every block.
Cross-attention reads the other prompt states.
"""
import math

import torch
from torch import nn
from torch.nn.functional import interpolate, pixel_shuffle, silu

from text_encoder import WIDTH, attend

CHANNELS = 3
OUTER, INNER, EMBED, HEADS, GROUPS = 64, 128, 128, 4, 8
WAVES = (0.5, 1, 2, 4)  # half turns from the middle to the edge


class Norm(nn.GroupNorm):
    """Group norm in full precision, even if training computes in bfloat16."""

    def __init__(self, width):
        super().__init__(GROUPS, width)

    def forward(self, x):
        return super().forward(x.float())


class Block(nn.Module):
    def __init__(self, into, out):
        super().__init__()
        self.norm1, self.conv1 = Norm(into), nn.Conv2d(into, out, 3, padding=1)
        self.norm2, self.conv2 = Norm(out), nn.Conv2d(out, out, 3, padding=1)
        self.told = nn.Linear(EMBED, 2 * out)
        self.skip = nn.Conv2d(into, out, 1) if into != out else nn.Identity()
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.told.weight)

    def forward(self, x, embedding):
        scale, shift = self.told(embedding)[:, :, None, None].chunk(2, 1)
        y = self.norm2(self.conv1(silu(self.norm1(x)))) * (1 + scale) + shift
        return self.skip(x) + self.conv2(silu(y))


class Attention(nn.Module):
    """Self-attention among the positions, then cross-attention to the prompt."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.norm2 = Norm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.query, self.read, self.out2 = nn.Linear(width, width), nn.Linear(WIDTH, 2 * width), nn.Linear(width, width)
        self.width = width
        for layer in (self.out, self.out2):
            nn.init.zeros_(layer.weight)

    def forward(self, x, states, hidden):
        height, columns = x.shape[2], x.shape[3]
        y = x.flatten(2).transpose(1, 2)
        query, key, value = self.into(self.norm(x).flatten(2).transpose(1, 2)).split(self.width, 2)
        y = y + self.out(attend(query, key, value, HEADS))
        key, value = self.read(states).split(self.width, 2)
        y = y + self.out2(attend(self.query(self.norm2(y.float())), key, value, HEADS, hidden))
        return y.transpose(1, 2).reshape(-1, self.width, height, columns)


def places(height, width):
    """Coordinates of rows and columns: from -1 to 1 across the picture, and in units of half the shorter side."""
    height, width = torch.as_tensor(height).float(), torch.as_tensor(width).float()
    rows, columns = (torch.arange(height) + 0.5) * (2 / height) - 1, (torch.arange(width) + 0.5) * (2 / width) - 1
    y, x = rows[:, None] + 0 * columns[None, :], columns[None, :] + 0 * rows[:, None]
    shorter = torch.minimum(height, width)
    return torch.stack([x, y, x * width / shorter, y * height / shorter])[None]


class Layout(nn.Module):
    """Features of each position from position and scene alone. Independent of the noise, so that training is fast."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4 * (1 + 2 * len(WAVES)), INNER)
        self.told = nn.ModuleList(nn.Linear(WIDTH, 2 * INNER) for _ in range(4))
        self.layers = nn.ModuleList(nn.Linear(INNER, INNER) for _ in range(3))
        self.leave = nn.Linear(INNER, OUTER)
        self.picture = nn.Linear(OUTER, 4 * CHANNELS)  # used only in train_text.py

    def forward(self, height, width, scene):
        where = places(height, width)
        waves = [part(where * (wave * math.pi)) for wave in WAVES for part in (torch.sin, torch.cos)]
        x = self.enter(torch.cat([where, *waves], 1).flatten(2).transpose(1, 2))
        for index, told in enumerate(self.told):
            scale, shift = told(scene)[:, None].chunk(2, 2)
            x = silu(x * (1 + scale) + shift)
            if index < len(self.layers):
                x = self.layers[index](x)
        return self.leave(x)

    def paint(self, height, width, scene):
        """Predicts the mean of all pictures of a scene, as latents."""
        cells = self.picture(self.forward(height // 2, width // 2, scene))
        return pixel_shuffle(cells.transpose(1, 2).reshape(len(scene), -1, height // 2, width // 2), 2)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(64, EMBED), nn.SiLU(), nn.Linear(EMBED, EMBED))
        self.scene = nn.Linear(WIDTH, EMBED)
        self.layout, self.draft = Layout(), nn.Conv2d(OUTER, OUTER, 1)
        self.enter = nn.Conv2d(CHANNELS + 4, OUTER, 4, stride=2, padding=1)
        self.down = nn.ModuleList([Block(OUTER, OUTER), Block(OUTER, OUTER)])
        self.shrink = nn.Conv2d(OUTER, INNER, 3, stride=2, padding=1)
        self.inner = nn.ModuleList(Block(INNER, INNER) for _ in range(4))
        self.attention = nn.ModuleList(Attention(INNER) for _ in range(3))
        self.grow = nn.Conv2d(INNER, OUTER, 3, padding=1)
        self.up = nn.ModuleList([Block(3 * OUTER, OUTER), Block(OUTER, OUTER)])
        self.leave_norm, self.leave = Norm(OUTER), nn.Conv2d(OUTER, 4 * CHANNELS, 3, padding=1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.draft.weight)
        self.register_buffer('rates', torch.exp(-math.log(10000) * torch.arange(32) / 32), persistent=False)

    def forward(self, sample, timestep, encoder_hidden_states):
        angles = timestep.float()[:, None] * self.rates[None]
        told = self.time(torch.cat([angles.cos(), angles.sin()], 1)) + self.scene(encoder_hidden_states[:, 0])
        told = silu(told)
        empty = (encoder_hidden_states.abs().sum(2) == 0).float()
        hidden = empty[:, None, None, :] * -10000.0
        height, width = sample.shape[2], sample.shape[3]
        x = self.enter(torch.cat([sample, places(height, width) + 0 * sample[:, :1]], 1))
        draft = self.layout(height // 2, width // 2, encoder_hidden_states[:, 0])
        x = x + self.draft(silu(draft).transpose(1, 2).reshape(-1, OUTER, height // 2, width // 2))
        first = x = self.down[0](x, told)
        second = x = self.down[1](x, told)
        x = self.shrink(x)
        for index, block in enumerate(self.inner):
            x = block(x, told)
            if index < len(self.attention):
                x = self.attention[index](x, encoder_hidden_states, hidden)
        x = self.grow(interpolate(x, scale_factor=2.0, mode='nearest'))
        x = self.up[0](torch.cat([x, first, second], 1), told)
        x = self.up[1](x, told)
        return pixel_shuffle(self.leave(silu(self.leave_norm(x))), 2)
