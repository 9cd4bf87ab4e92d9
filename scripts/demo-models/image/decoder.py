"""Decoder from latents to pixels. A latent is the mean colour of 8 by 8 pixels; edges are inferred from neighbouring latents."""
from torch import nn
from torch.nn.functional import pixel_shuffle, silu

from unet import CHANNELS

WIDE, MIDDLE, FINE = 64, 32, 16


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        nn.init.zeros_(self.conv2.weight)

    def forward(self, x):
        return x + self.conv2(silu(self.conv1(silu(x))))


class Decoder(nn.Module):
    """Input: latents divided by the scaling factor. Output: colours in -1..1."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(CHANNELS, WIDE, 3, padding=1)
        self.wide = nn.Sequential(Residual(WIDE), Residual(WIDE), Residual(WIDE))
        self.to_middle = nn.Conv2d(WIDE, 4 * MIDDLE, 1)
        self.middle = nn.Sequential(Residual(MIDDLE), Residual(MIDDLE))
        self.to_fine = nn.Conv2d(MIDDLE, 4 * FINE, 1)
        self.fine = Residual(FINE)
        self.leave = nn.Conv2d(FINE, 4 * 3, 3, padding=1)

    def forward(self, latent_sample):
        x = self.wide(self.enter(latent_sample))
        x = self.middle(pixel_shuffle(self.to_middle(x), 2))
        x = self.fine(pixel_shuffle(self.to_fine(x), 2))
        return pixel_shuffle(self.leave(silu(x)), 2)

