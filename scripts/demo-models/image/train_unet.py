"""Trains the denoiser, and continues the training of the text encoder. See README.md."""
import argparse
import copy
import pathlib
import sys
import time

import torch
from torch.nn.functional import cross_entropy

from checkpoint import load, save
from diffusion import SCALING, STEPS, noisy
from paint import thumbnail
from scene import Draw
from text_encoder import FACTS, Reader, TextEncoder, facts_of
from tokenizer import END, Tokenizer
from unet import UNet
from wording import Wording

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
from muon import KernelMuon

# Cheap small pictures first. Positions are relative to the picture, so the weights also apply to larger pictures.
EARLY = [(192, 192)] * 4 + [(288, 192), (192, 288), (128, 128), (128, 128)]
SIZES = [(256, 256)] * 6 + [(384, 256), (256, 384), (192, 192), (128, 128)]
EARLY_PART = 0.4
WITHOUT_PROMPT = 0.1
APART = ('enter', 'leave', 'time', 'scene', 'layout')  # trained with AdamW instead of Muon


def batch(draw, tokenizer, sizes, latents_per_step):
    width, height = draw.choice(sizes)
    wording, pictures, ids, facts = Wording(draw), [], [], []
    for _ in range(latents_per_step * 64 // (width * height)):
        scene = draw.scene()
        pictures.append(torch.from_numpy(thumbnail(scene, width, height, draw)))
        told = not draw.chance(WITHOUT_PROMPT)
        ids.append(tokenizer.encode(wording.prompt(scene) if told else ''))
        facts.append(facts_of(scene) if told else [0] * len(FACTS))
    return (torch.stack(pictures) * 2 - 1) * SCALING, torch.tensor(ids), torch.tensor(facts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='checkpoint')
    parser.add_argument('--minutes', type=float, default=30)
    parser.add_argument('--latents', type=int, default=20 * 32 * 32, help='latents per step')
    parser.add_argument('--muon', type=float, default=0.02)
    parser.add_argument('--adam', type=float, default=0.002)
    parser.add_argument('--decay', type=float, default=0.5, help='last part of the time, in which the rate falls')
    parser.add_argument('--seed', type=int, default=2)
    parser.add_argument('--resume', action='store_true')
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    draw, tokenizer = Draw(options.seed), Tokenizer.load(f'{options.out}/tokenizer')
    encoder = load(f'{options.out}/text_encoder.pt', TextEncoder(len(tokenizer.tokens), tokenizer.ids[END]))
    reader = load(f'{options.out}/reader.pt', Reader())
    unet = UNet()
    load(f'{options.out}/layout.pt', unet.layout)
    if options.resume:
        load(f'{options.out}/last_unet.pt', unet)
        load(f'{options.out}/last_encoder.pt', encoder)
    unet = unet.to(memory_format=torch.channels_last)
    print('parameters', sum(weight.numel() for weight in unet.parameters()), flush=True)

    models = torch.nn.ModuleList([unet, encoder])
    averages = copy.deepcopy(models)
    matrices = [w for name, w in unet.named_parameters() if w.dim() > 1 and name.split('.')[0] not in APART]
    taught = [*encoder.parameters(), *reader.parameters(), *unet.layout.parameters()]
    chosen = {id(w) for w in [*matrices, *taught]}
    others = [w for w in unet.parameters() if id(w) not in chosen]
    optimizers = [
        (KernelMuon(matrices), options.muon),
        (torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0), options.adam),
        (torch.optim.AdamW(taught, betas=(0.9, 0.98), weight_decay=0.0), options.adam / 8),
    ]
    started, reported, saved, smooth, seen, step = time.time(), 0, 0, None, 0, 0
    while (elapsed := time.time() - started) < 60 * options.minutes:
        done = elapsed / (60 * options.minutes)
        rate = min(1, (step + 1) / 50) * min(1, max(0.01, (1 - done) / options.decay))
        clean, ids, facts = batch(draw, tokenizer, EARLY if done < EARLY_PART and not options.resume else SIZES, options.latents)
        ids = ids[:, : int((ids != encoder.end).sum(1).max()) + 1]
        times = torch.randint(0, STEPS, (len(clean),))
        latents, weight = noisy(clean, torch.randn_like(clean), times)
        latents = latents.contiguous(memory_format=torch.channels_last)
        with torch.autocast('cpu', dtype=torch.bfloat16):
            states = encoder(ids)
            loss = (weight * (unet(latents, times, states).float() - clean) ** 2).mean()
            read = sum(cross_entropy(scores.float(), facts[:, i]) for i, scores in enumerate(reader(states))) / len(FACTS)
        for optimizer, top in optimizers:
            optimizer.param_groups[0]['lr'] = top * rate
            optimizer.zero_grad()
        (loss + 0.2 * read).backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        torch.nn.utils.clip_grad_norm_(taught, 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        step, seen = step + 1, seen + len(clean)
        keep = min(0.998, (step + 1) / (step + 20))
        with torch.no_grad():
            for average, current in zip(averages.parameters(), models.parameters()):
                average.lerp_(current, 1 - keep)
        smooth = loss.item() if smooth is None else 0.97 * smooth + 0.03 * loss.item()
        if elapsed - reported > 20:
            reported = elapsed
            print(f'{elapsed:.0f} s, step {step}, pictures {seen}, loss {smooth:.4f}, reading {read.item():.4f}', flush=True)
        if elapsed - saved > 120:
            saved = elapsed
            write(options.out, averages, unet, encoder)
    write(options.out, averages, unet, encoder)


def write(out, averages, unet, encoder):
    save(f'{out}/unet.pt', averages[0])
    save(f'{out}/encoder.pt', averages[1])
    save(f'{out}/last_unet.pt', unet)
    save(f'{out}/last_encoder.pt', encoder)


if __name__ == '__main__':
    main()
