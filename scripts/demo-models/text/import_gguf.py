"""Converts an exported GGUF (Q8_0 or F32 tensors) to a checkpoint folder, to continue training. Inverse of export.ts.

  python3 import_gguf.py pico.gguf checkpoint
"""
import math
import pathlib
import struct
import sys

import numpy
import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
import checkpoint
from bpe import SPECIAL, Tokenizer
from model import Model, Shape

SCALARS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}
STRING, ARRAY = 8, 9
F32, Q8_0 = 0, 8
LAYER_NAMES = dict(
    attn_norm='attn_norm',
    attn_q='q',
    attn_k='k',
    attn_v='v',
    attn_output='o',
    attn_q_norm='q_norm',
    attn_k_norm='k_norm',
    ffn_norm='ffn_norm',
    ffn_gate='gate',
    ffn_up='up',
    ffn_down='down',
)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 4
        if data[:4] != b'GGUF' or self.scalar('I') != 3:
            raise ValueError('not a GGUF file of version 3')

    def scalar(self, kind):
        value = struct.unpack_from('<' + kind, self.data, self.at)[0]
        self.at += struct.calcsize(kind)
        return value

    def string(self):
        length = self.scalar('Q')
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.scalar('I'), self.scalar('Q')
            return [self.value(element) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def read(path):
    """Returns the metadata, and the tensors as float32."""
    with open(path, 'rb') as file:
        reader = Reader(file.read())
    tensor_count, value_count = reader.scalar('Q'), reader.scalar('Q')
    metadata = {}
    for _ in range(value_count):
        key = reader.string()
        metadata[key] = reader.value(reader.scalar('I'))
    entries = []
    for _ in range(tensor_count):
        name = reader.string()
        shape = [reader.scalar('Q') for _ in range(reader.scalar('I'))][::-1]
        entries.append((name, shape, reader.scalar('I'), reader.scalar('Q')))
    start = math.ceil(reader.at / 32) * 32
    return metadata, {name: decode(reader.data, start + offset, shape, kind) for name, shape, kind, offset in entries}


def decode(data, offset, shape, kind):
    count = math.prod(shape)
    if kind == F32:
        values = numpy.frombuffer(data, '<f4', count, offset)
    elif kind == Q8_0:
        blocks = numpy.frombuffer(data, numpy.uint8, count // 32 * 34, offset).reshape(-1, 34)
        values = blocks[:, :2].copy().view('<f2').astype('<f4') * blocks[:, 2:].copy().view('i1')
    else:
        raise ValueError(f'tensor type {kind} is not read here')
    return torch.from_numpy(values.reshape(shape).copy())


def parameter_name(name):
    if name.startswith('blk.'):
        _, layer, kind, _ = name.split('.')
        return f'blocks.{layer}.{LAYER_NAMES[kind]}.weight'
    return {'token_embd.weight': 'emb.weight', 'output_norm.weight': 'norm.weight'}[name]


def main(source, folder):
    metadata, tensors = read(source)
    of = lambda key: metadata[f'qwen3.{key}']
    tokens = metadata['tokenizer.ggml.tokens']
    model = Model(
        Shape(
            vocab=len(tokens),
            dim=of('embedding_length'),
            layers=of('block_count'),
            heads=of('attention.head_count'),
            kv_heads=of('attention.head_count_kv'),
            ff=of('feed_forward_length'),
            context=of('context_length'),
            rope_base=of('rope.freq_base'),
            epsilon=of('attention.layer_norm_rms_epsilon'),
        )
    )
    model.load_state_dict({parameter_name(name): tensor for name, tensor in tensors.items()})
    merges = [tuple(merge.split(' ')) for merge in metadata['tokenizer.ggml.merges']]
    assert tokens[-len(SPECIAL) :] == SPECIAL, 'the vocabulary is not of bpe.py'
    checkpoint.save(folder, model, Tokenizer(dict(tokens=tokens, merges=merges)))


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
