"""A small decoder with the architecture of Qwen3: RMSNorm, rotary positions, grouped-query attention with normalized queries and
keys, SwiGLU, tied embeddings. Computes the same as llama.cpp's `qwen3`. Runs on torch 1.13 and later.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Shape:
    vocab: int = 1024
    dim: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    ff: int = 640
    context: int = 2048
    rope_base: float = 10000.0
    epsilon: float = 1e-5

    @property
    def head_dim(self):
        return self.dim // self.heads


class RMSNorm(nn.Module):
    def __init__(self, dim, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.epsilon = epsilon

    def forward(self, x):
        if x.is_cuda:
            return F.rms_norm(x.float(), self.weight.shape, self.weight, self.epsilon)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def rotate(x, cos, sin):
    """Rotates the two halves of each head against each other (the NEOX order of qwen3)."""
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        head, dim = shape.head_dim, shape.dim
        self.attn_norm, self.ffn_norm = RMSNorm(dim, shape.epsilon), RMSNorm(dim, shape.epsilon)
        self.q_norm, self.k_norm = RMSNorm(head, shape.epsilon), RMSNorm(head, shape.epsilon)
        self.q = nn.Linear(dim, shape.heads * head, bias=False)
        self.k = nn.Linear(dim, shape.kv_heads * head, bias=False)
        self.v = nn.Linear(dim, shape.kv_heads * head, bias=False)
        self.o = nn.Linear(shape.heads * head, dim, bias=False)
        self.gate = nn.Linear(dim, shape.ff, bias=False)
        self.up = nn.Linear(dim, shape.ff, bias=False)
        self.down = nn.Linear(shape.ff, dim, bias=False)

    def forward(self, x, cos, sin, mask):
        x = x + self.attend(self.attn_norm(x), cos, sin, mask)
        h = self.ffn_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def attend(self, h, cos, sin, mask):
        shape, (batch, length, _) = self.shape, h.shape
        split = lambda y, heads: y.view(batch, length, heads, shape.head_dim).transpose(1, 2)
        q = rotate(self.q_norm(split(self.q(h), shape.heads)), cos, sin)
        k = rotate(self.k_norm(split(self.k(h), shape.kv_heads)), cos, sin)
        v = split(self.v(h), shape.kv_heads)
        group = shape.heads // shape.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        if q.is_cuda:
            mixed = F.scaled_dot_product_attention(q, k, v.to(q.dtype), is_causal=True)
            return self.o(mixed.transpose(1, 2).reshape(batch, length, -1))
        scores = (q @ k.transpose(-1, -2)) * shape.head_dim**-0.5 + mask
        return self.o((scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(batch, length, -1))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.emb = nn.Embedding(shape.vocab, shape.dim)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = RMSNorm(shape.dim, shape.epsilon)
        frequencies = shape.rope_base ** -(torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
        angles = torch.outer(torch.arange(shape.context).float(), frequencies)
        self.register_buffer('cos', angles.cos(), persistent=False)
        self.register_buffer('sin', angles.sin(), persistent=False)
        self.start()

    def start(self):
        """Sets random weights. Output matrices of layers start small, so that a deep stack starts near the identity."""
        for name, weight in self.named_parameters():
            if name == 'emb.weight':
                nn.init.normal_(weight, 0, 0.02)
            elif weight.dim() > 1:
                depth = 1 / math.sqrt(2 * self.shape.layers) if name.endswith(('.o.weight', '.down.weight')) else 1
                nn.init.normal_(weight, 0, depth * weight.shape[1] ** -0.5)

    def forward(self, ids, targets):
        """Returns the mean loss over all targets other than -100."""
        learned = targets.ne(-100)
        return F.cross_entropy(self.logits(self.emb(ids), learned).float(), targets[learned])

    def logits(self, x, wanted):
        """Next-token scores of the `wanted` positions of a batch of embeddings."""
        length = x.shape[1]
        mask = torch.full((length, length), float('-inf'), device=x.device).triu(1)
        for block in self.blocks:
            x = block(x, self.cos[:length], self.sin[:length], mask)
        return self.norm(x)[wanted] @ self.emb.weight.T
