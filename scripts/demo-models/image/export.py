"""Exports a checkpoint to a model folder: ONNX graphs and the tokenizer. See README.md.

Large weights are stored as 8-bit integers with a scale per output channel, other weights as 16-bit floats. The graphs convert the
weights to 32-bit floats, which the runtime does once, at load time.
"""
import argparse
import os
import pathlib
import warnings

import torch
from torch import nn
from torch.nn.utils import parametrize

from checkpoint import load
from decoder import Decoder
from text_encoder import WIDTH, TextEncoder
from tokenizer import END, LENGTH, Tokenizer
from unet import CHANNELS, UNet

OPSET = 16
MIN_LARGE = 2048  # weights


class Stored(nn.Module):
    """Parametrization that holds a weight in its stored type, and converts it to 32-bit floats in the graph."""

    def __init__(self, weight, eight_bits):
        super().__init__()
        weight, scale = weight.detach(), None
        if eight_bits:
            scale = (weight.flatten(1).abs().amax(1) / 127).clamp(min=1e-8).reshape(-1, *[1] * (weight.dim() - 1))
        self.register_buffer('scale', scale)
        self.register_buffer('kept', weight.half() if scale is None else torch.round(weight / scale).to(torch.int8))

    def forward(self, _original):
        return self.kept.float() if self.scale is None else self.kept.float() * self.scale


def store(module, eight_bits=True):
    for part in list(module.modules()):
        for name, weight in list(part.named_parameters(recurse=False)):
            parametrize.register_parametrization(part, name, Stored(weight, eight_bits and weight.dim() > 1 and weight.numel() >= MIN_LARGE), unsafe=True)
    return module.eval()


def write(path, module, inputs, outputs):
    """`inputs`: name to example and dynamic axes; `outputs`: name to dynamic axes."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    axes = {name: given for name, (_, given) in inputs.items()} | outputs
    with warnings.catch_warnings(), torch.no_grad():
        # The tracer warns about sizes that become constants in the graph.
        warnings.simplefilter('ignore')
        torch.onnx.export(
            module, tuple(example for example, _ in inputs.values()), path, input_names=list(inputs), output_names=list(outputs),
            dynamic_axes=axes, opset_version=OPSET, do_constant_folding=False,
        )
    print(path, os.path.getsize(path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('checkpoint')
    parser.add_argument('folder')
    parser.add_argument('--half', action='store_true', help='16-bit floats for the large weights as well')
    options = parser.parse_args()
    source, folder, small = options.checkpoint, pathlib.Path(options.folder), not options.half
    tokenizer = Tokenizer.load(f'{source}/tokenizer')
    tokenizer.save(folder / 'tokenizer')
    encoder = load(f'{source}/encoder.pt', TextEncoder(len(tokenizer.tokens), tokenizer.ids[END]))
    batch = {0: 'batch'}
    words, picture = batch | {1: 'sequence'}, batch | {2: 'height', 3: 'width'}
    ids = torch.tensor([tokenizer.encode('a red circle on a blue background')] * 2, dtype=torch.int32)
    write(f'{folder}/text_encoder/model.onnx', store(encoder, small), {'input_ids': (ids, words)}, {'last_hidden_state': words})
    write(
        f'{folder}/unet/model.onnx',
        store(load(f'{source}/unet.pt', UNet()), small),
        {
            'sample': (torch.randn(2, CHANNELS, 32, 32), picture),
            'timestep': (torch.tensor([500, 500]), {0: 'times'}),
            'encoder_hidden_states': (torch.randn(2, LENGTH, WIDTH), words),
        },
        {'out_sample': picture},
    )
    write(
        f'{folder}/vae_decoder/model.onnx',
        store(load(f'{source}/decoder.pt', Decoder()), small),
        {'latent_sample': (torch.randn(2, CHANNELS, 32, 32), picture)},
        {'sample': batch | {2: 'rows', 3: 'columns'}},
    )


if __name__ == '__main__':
    main()
