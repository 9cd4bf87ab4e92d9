"""Trains the tokenizer, the text encoder and the denoiser's `Layout`. See README.md.

The encoder learns to classify the scene; `Layout` learns to predict the mean of all pictures that match a prompt.
"""
import argparse
import pathlib
import sys
import time

import torch
from torch.nn.functional import cross_entropy

import tokenizer as bpe
from checkpoint import load, save
from diffusion import SCALING
from paint import thumbnail
from scene import Draw
from text_encoder import FACTS, Reader, TextEncoder, facts_of
from unet import Layout
from wording import Wording

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
from muon import KernelMuon

SIZES = [(192, 192), (256, 256), (256, 256), (384, 256), (256, 384), (128, 128)]


def examples(draw, tokenizer, count, size):
    wording, ids, facts, pictures = Wording(draw), [], [], []
    for _ in range(count):
        scene = draw.scene()
        ids.append(tokenizer.encode(wording.prompt(scene)))
        facts.append(facts_of(scene))
        pictures.append(torch.from_numpy(thumbnail(scene, *size, draw, fine=2)))
    return torch.tensor(ids), torch.tensor(facts), (torch.stack(pictures) * 2 - 1) * SCALING


def evaluate(encoder, reader, tokenizer):
    ids, facts, _ = examples(Draw(7, held_out=True), tokenizer, 300, (128, 128))
    with torch.no_grad():
        answers = torch.stack([scores.argmax(1) for scores in reader(encoder(ids))], 1)
    right = answers == facts
    print('held-out scenes read right:', right.all(1).float().mean().item(), 'by fact', [round(x, 3) for x in right.float().mean(0).tolist()], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='checkpoint')
    parser.add_argument('--minutes', type=float, default=8)
    parser.add_argument('--batch', type=int, default=64)
    parser.add_argument('--resume', action='store_true', help='go on from what is there')
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    draw = Draw(1)
    if options.resume:
        tokenizer = bpe.Tokenizer.load(f'{options.out}/tokenizer')
    else:
        tokenizer = bpe.train([Wording(draw).prompt(draw.scene()) for _ in range(20000)])
        tokenizer.save(f'{options.out}/tokenizer')
    layout, encoder, reader = Layout(), TextEncoder(len(tokenizer.tokens), tokenizer.ids[bpe.END]), Reader()
    if options.resume:
        load(f'{options.out}/text_encoder.pt', encoder)
        load(f'{options.out}/reader.pt', reader)
        load(f'{options.out}/layout.pt', layout)
    print('tokens', len(tokenizer.tokens), 'parameters', sum(weight.numel() for weight in encoder.parameters()), flush=True)
    kernels = [layer.weight for layer in [*layout.layers, layout.leave]]
    others = [*encoder.parameters(), *reader.parameters(), *layout.told.parameters(), *layout.enter.parameters(), *layout.picture.parameters()]
    others += [layer.bias for layer in [*layout.layers, layout.leave]]
    optimizers = [(KernelMuon(kernels), 0.02), (torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.01), 0.002)]
    started, reported, step = time.time(), 0, 0
    while (elapsed := time.time() - started) < 60 * options.minutes:
        done = elapsed / (60 * options.minutes)
        rate = min(1, (step + 1) / 100) * min(1, max(0.02, (1 - done) / 0.6))
        ids, facts, pictures = examples(draw, tokenizer, options.batch, draw.choice(SIZES))
        ids = ids[:, : int((ids != encoder.end).sum(1).max()) + 1]
        with torch.autocast('cpu', dtype=torch.bfloat16):
            states = encoder(ids)
            read = sum(cross_entropy(scores.float(), facts[:, i]) for i, scores in enumerate(reader(states))) / len(FACTS)
            drawn = (layout.paint(*pictures.shape[2:], states[:, 0]).float() - pictures).square().mean()
        loss = read + drawn
        for optimizer, top in optimizers:
            optimizer.param_groups[0]['lr'] = top * rate
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        step += 1
        if elapsed - reported > 15:
            reported = elapsed
            print(f'{elapsed:.0f} s, step {step}, reading {read.item():.4f}, drawing {drawn.item():.4f}', flush=True)
    evaluate(encoder, reader, tokenizer)
    save(f'{options.out}/text_encoder.pt', encoder)
    save(f'{options.out}/reader.pt', reader)
    save(f'{options.out}/layout.pt', layout)


if __name__ == '__main__':
    main()
