"""The noise: the linear schedule of DDPM, velocity as the prediction, and Euler steps as the pipeline takes them."""
import math

import torch

STEPS, BETA_START, BETA_END = 1000, 0.0001, 0.02
SCALING = 1.4  # latents of colours in -1..1 times this are about as wide as the noise
KEPT = torch.cumprod(1 - torch.linspace(BETA_START, BETA_END, STEPS, dtype=torch.float64), 0).float()


def noisy(clean, noise, times):
    """The noised latents, and the velocity that leads there."""
    kept = KEPT[times][:, None, None, None]
    return kept.sqrt() * clean + (1 - kept).sqrt() * noise, kept.sqrt() * noise - (1 - kept).sqrt() * clean


@torch.no_grad()
def sample(predict, noise, steps, guidance):
    """`predict(latents, times)` answers for both halves of a doubled batch: without the prompt, then with it."""
    times = [round((STEPS - 1) * (1 - step / (steps - 1))) for step in range(steps)]
    latents = noise
    for index, time in enumerate(times):
        kept = KEPT[time].item()
        next_kept = KEPT[times[index + 1]].item() if index + 1 < steps else 1.0
        plain, told = predict(torch.cat([latents, latents]), torch.full((2 * len(latents),), time)).chunk(2)
        velocity = plain + guidance * (told - plain)
        clean = math.sqrt(kept) * latents - math.sqrt(1 - kept) * velocity
        error = math.sqrt(1 - kept) * latents + math.sqrt(kept) * velocity
        latents = math.sqrt(next_kept) * clean + math.sqrt(1 - next_kept) * error
    return latents
