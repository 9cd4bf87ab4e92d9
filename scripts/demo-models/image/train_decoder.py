"""Trains the decoder on crops of painted scenes. See README.md."""
import argparse
import pathlib
import sys
import time

import torch

from checkpoint import load, save
from decoder import Decoder
from paint import paint_layout
from scene import Draw, layout

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
from muon import KernelMuon

WINDOW = 96  # pixels
SIZES = [(256, 256), (256, 256), (384, 256), (128, 128), (192, 192)]


def window(draw):
    width, height = draw.choice(SIZES)
    placed, ground = layout(draw.scene(), width, height, draw)
    _, _, x, y, radius, _ = draw.choice(placed)
    unit = min(width, height) / 2
    # Near the edge of a figure, because plain areas teach little.
    left = width / 2 + (x + draw.uniform(-1, 1) * radius) * unit - WINDOW / 2
    top = height / 2 + (y + draw.uniform(-1, 1) * radius) * unit - WINDOW / 2
    left, top = (8 * round(min(size - WINDOW, max(0, start)) / 8) for start, size in ((left, width), (top, height)))
    return torch.from_numpy(paint_layout(placed, ground, width, height, left, top, left + WINDOW, top + WINDOW))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='checkpoint')
    parser.add_argument('--minutes', type=float, default=8)
    parser.add_argument('--batch', type=int, default=16)
    parser.add_argument('--resume', action='store_true')
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    draw, decoder = Draw(3), Decoder().to(memory_format=torch.channels_last)
    if options.resume:
        load(f'{options.out}/decoder.pt', decoder)
    print('parameters', sum(weight.numel() for weight in decoder.parameters()), flush=True)
    kernels = [w for name, w in decoder.named_parameters() if w.dim() > 1 and not name.startswith(('enter', 'leave'))]
    chosen = {id(w) for w in kernels}
    others = [w for w in decoder.parameters() if id(w) not in chosen]
    optimizers = [(KernelMuon(kernels), 0.02), (torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0), 0.002)]
    started, reported, smooth, step = time.time(), 0, None, 0
    while (elapsed := time.time() - started) < 60 * options.minutes:
        done = elapsed / (60 * options.minutes)
        rate = min(1, (step + 1) / 50) * min(1, max(0.01, (1 - done) / 0.7))
        pictures = torch.stack([window(draw) for _ in range(options.batch)]) * 2 - 1
        latents = torch.nn.functional.avg_pool2d(pictures, 8)
        # Noise, because latents from the denoiser are not exact either.
        latents = latents + torch.randn_like(latents) * 0.04 * torch.rand(len(latents), 1, 1, 1)
        made = decoder(latents.contiguous(memory_format=torch.channels_last))
        loss = (made - pictures).abs().mean()
        for optimizer, top in optimizers:
            optimizer.param_groups[0]['lr'] = top * rate
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        step += 1
        smooth = loss.item() if smooth is None else 0.97 * smooth + 0.03 * loss.item()
        if elapsed - reported > 20:
            reported = elapsed
            print(f'{elapsed:.0f} s, step {step}, error {smooth:.4f}', flush=True)
            save(f'{options.out}/decoder.pt', decoder)
    save(f'{options.out}/decoder.pt', decoder)


if __name__ == '__main__':
    main()
