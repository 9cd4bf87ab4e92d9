"""The vision model: a SigLIP-like encoder, whose projected patches replace image tokens in the input of a small decoder.

Computes the same as llama.cpp's projector type `janus_pro` with `qwen3`. Runs on torch 1.13 and later.
"""
import dataclasses
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
from model import Model, Shape


@dataclasses.dataclass
class EncoderShape:
    image: int = 128
    patch: int = 16
    dim: int = 192
    layers: int = 6
    heads: int = 3
    ff: int = 768
    epsilon: float = 1e-6

    @property
    def tokens(self):
        """Number of patches of a picture. Each patch is one token of the decoder."""
        return (self.image // self.patch) ** 2


@dataclasses.dataclass
class VisionShape:
    encoder: EncoderShape
    decoder: Shape

    @staticmethod
    def of(shape):
        return VisionShape(EncoderShape(**shape['encoder']), Shape(**shape['decoder']))


class EncoderBlock(nn.Module):
    """Attention without a mask and an MLP, both after a layer norm. Only the norms have biases."""

    def __init__(self, shape):
        super().__init__()
        self.heads = shape.heads
        self.ln1, self.ln2 = nn.LayerNorm(shape.dim, shape.epsilon), nn.LayerNorm(shape.dim, shape.epsilon)
        self.q = nn.Linear(shape.dim, shape.dim, bias=False)
        self.k = nn.Linear(shape.dim, shape.dim, bias=False)
        self.v = nn.Linear(shape.dim, shape.dim, bias=False)
        self.o = nn.Linear(shape.dim, shape.dim, bias=False)
        self.up = nn.Linear(shape.dim, shape.ff, bias=False)
        self.down = nn.Linear(shape.ff, shape.dim, bias=False)

    def forward(self, x):
        x = x + self.o(self.mix(self.ln1(x)))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate='tanh'))

    def mix(self, h):
        batch, length, dim = h.shape
        q, k, v = (part(h).view(batch, length, self.heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        if q.is_cuda:
            mixed = F.scaled_dot_product_attention(q, k, v)
        else:
            mixed = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1).to(v.dtype) @ v
        return mixed.transpose(1, 2).reshape(batch, length, dim)


class Encoder(nn.Module):
    """Pictures `[count, 3, image, image]` in -1..1 to embeddings `[count, tokens, width]`."""

    def __init__(self, shape, width):
        super().__init__()
        self.patch = nn.Conv2d(3, shape.dim, shape.patch, shape.patch)
        self.position = nn.Parameter(torch.empty(shape.tokens, shape.dim))
        self.blocks = nn.ModuleList(EncoderBlock(shape) for _ in range(shape.layers))
        self.post_ln = nn.LayerNorm(shape.dim, shape.epsilon)
        self.mm0, self.mm1 = nn.Linear(shape.dim, 2 * width), nn.Linear(2 * width, width)
        self.start(shape)

    def start(self, shape):
        for name, weight in self.named_parameters():
            if name == 'position':
                nn.init.normal_(weight, 0, 0.02)
            elif weight.dim() > 1:
                depth = 1 / math.sqrt(2 * shape.layers) if name.endswith(('.o.weight', '.down.weight')) else 1
                nn.init.normal_(weight, 0, depth * weight[0].numel() ** -0.5)

    def forward(self, pictures):
        x = self.patch(pictures).flatten(2).transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x)
        return self.mm1(F.gelu(self.mm0(self.post_ln(x)), approximate='tanh'))


class VisionModel(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.encoder = Encoder(shape.encoder, shape.decoder.dim)
        self.decoder = Model(shape.decoder)

    def logits(self, ids, pictures, wanted):
        """Next-token scores. `ids` below zero are image tokens, which are replaced by the pictures' patches in order."""
        x = self.decoder.emb(ids.clamp(min=0))
        if pictures is not None:
            patches = self.encoder(pictures)
            x = x.masked_scatter(ids.lt(0)[..., None], patches.to(x.dtype))
        return self.decoder.logits(x, wanted)
