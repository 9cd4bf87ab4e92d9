"""The noise: the linear schedule of DDPM. The denoiser tells the clean latents (`prediction_type: sample`)."""
import torch

STEPS, BETA_START, BETA_END = 1000, 0.0001, 0.02
SCALING = 1.4  # latents of colours in -1..1 times this are about as wide as the noise
KEPT = torch.cumprod(1 - torch.linspace(BETA_START, BETA_END, STEPS, dtype=torch.float64), 0).float()


LARGEST_WEIGHT = 5.0


def noisy(clean, noise, times):
    """The noised latents, and how much each picture's error counts: as the error of the velocity would, but never much more."""
    kept = KEPT[times][:, None, None, None]
    return kept.sqrt() * clean + (1 - kept).sqrt() * noise, (1 / (1 - kept)).clamp(max=LARGEST_WEIGHT)
