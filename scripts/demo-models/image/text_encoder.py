"""Text encoder: a small transformer over the prompt's tokens. Outputs after the first end token are zeros."""
import torch
from torch import nn

from scene import COLOURS, PLACES, SHAPES, SIZES

WIDTH, LAYERS, HEADS, LONGEST = 96, 3, 4, 77
# Attributes that the first token must encode, for the ground and per figure: an index into each list; 0: not named.
FIGURE = [list(SHAPES), list(COLOURS), list(SIZES), list(PLACES)]
FACTS = [list(COLOURS), ['two'], *FIGURE, *FIGURE]


def attend(query, key, value, heads, hidden=None):
    """`[batch, tokens, width]` each; `hidden` is added to the scores."""
    batch, _, width = query.shape

    def split(x):
        return x.reshape(batch, -1, heads, width // heads).transpose(1, 2)

    scores = split(query) @ split(key).transpose(2, 3) * (width // heads) ** -0.5
    if hidden is not None:
        scores = scores + hidden
    return (scores.softmax(-1) @ split(value)).transpose(1, 2).reshape(batch, -1, width)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, hidden):
        query, key, value = self.into(self.norm(x.float())).split(WIDTH, 2)
        x = x + self.out(attend(query, key, value, HEADS, hidden))
        return x + self.down(nn.functional.silu(self.up(self.after(x.float()))))


class TextEncoder(nn.Module):
    def __init__(self, vocabulary, end):
        super().__init__()
        self.end = end
        self.tokens, self.places = nn.Embedding(vocabulary, WIDTH), nn.Parameter(torch.randn(LONGEST, WIDTH) * 0.1)
        nn.init.normal_(self.tokens.weight, std=0.5)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, input_ids):
        ends = (input_ids == self.end).int()
        after = (ends.cumsum(1) - ends > 0).float()
        hidden = after[:, None, None, :] * -10000.0
        x = self.tokens(input_ids) + self.places[: input_ids.shape[1]]
        for layer in self.layers:
            x = layer(x, hidden)
        return self.norm(x.float()) * (1 - after)[:, :, None]


class Reader(nn.Module):
    """Classifiers of the scene from the first token; used only in training, and not exported."""

    def __init__(self):
        super().__init__()
        self.heads = nn.Linear(WIDTH, sum(len(fact) + 1 for fact in FACTS))

    def forward(self, states):
        return self.heads(states[:, 0]).split([len(fact) + 1 for fact in FACTS], 1)


def facts_of(scene):
    second = scene.figures[1] if len(scene.figures) > 1 else None
    values = [scene.ground, 'two' if second else None]
    for figure in (scene.figures[0], second):
        values += [figure.shape, figure.colour, figure.size, figure.place] if figure else [None] * 4
    return [0 if value is None else 1 + fact.index(value) for value, fact in zip(values, FACTS)]
