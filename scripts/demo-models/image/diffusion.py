"""Noise schedule of training: linear, as in DDPM. The denoiser predicts the clean latents (`prediction_type: sample`)."""
import torch

STEPS, BETA_START, BETA_END = 1000, 0.0001, 0.02
SCALING = 1.4  # gives latents about the standard deviation of the noise
KEPT = torch.cumprod(1 - torch.linspace(BETA_START, BETA_END, STEPS, dtype=torch.float64), 0).float()


MAX_WEIGHT = 5.0


def noisy(clean, noise, times):
    """Returns noised latents, and the loss weight of each picture: the weight of velocity prediction, with an upper limit."""
    kept = KEPT[times][:, None, None, None]
    return kept.sqrt() * clean + (1 - kept).sqrt() * noise, (1 / (1 - kept)).clamp(max=MAX_WEIGHT)
