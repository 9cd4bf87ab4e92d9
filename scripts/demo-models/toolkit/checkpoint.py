"""Checkpoints as a folder: `weights.bin` (float32, little endian), `meta.json` (shape, offsets) and `tokenizer.json`."""
import dataclasses
import json
import os

import numpy
import torch

from bpe import Tokenizer
from model import Model, Shape


def save(folder, model, tokenizer):
    os.makedirs(folder, exist_ok=True)
    tensors, offset = {}, 0
    with open(f'{folder}/weights.part', 'wb') as file:
        for name, weight in model.state_dict().items():
            data = weight.detach().float().cpu().contiguous().numpy().tobytes()
            tensors[name] = dict(shape=list(weight.shape), offset=offset)
            file.write(data)
            offset += len(data)
    os.replace(f'{folder}/weights.part', f'{folder}/weights.bin')
    with open(f'{folder}/meta.json', 'w') as file:
        json.dump(dict(shape=dataclasses.asdict(model.shape), tensors=tensors), file)
    tokenizer.save(f'{folder}/tokenizer.json')


def load(folder, create=lambda shape: Model(Shape(**shape))):
    """`create` builds a model from its shape. Default: a decoder."""
    with open(f'{folder}/meta.json') as file:
        meta = json.load(file)
    data = numpy.fromfile(f'{folder}/weights.bin', dtype='<f4')
    model = create(meta['shape'])
    weights = {}
    for name, entry in meta['tensors'].items():
        start, count = entry['offset'] // 4, int(numpy.prod(entry['shape']))
        weights[name] = torch.from_numpy(data[start : start + count].reshape(entry['shape']).copy())
    model.load_state_dict(weights)
    return model, Tokenizer.load(f'{folder}/tokenizer.json')
