"""Muon of ../demo-model for kernels as well: each is the matrix of its outputs by all its inputs."""
import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'demo-model'))
from muon import orthogonalize


class KernelMuon(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {'lr': 0.0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group['params']:
                state = self.state[weight]
                velocity = state.setdefault('velocity', torch.zeros_like(weight))
                velocity.lerp_(weight.grad, 0.05)
                update = orthogonalize(weight.grad.lerp(velocity, 0.95).flatten(1)).reshape(weight.shape)
                weight.mul_(1 - group['lr'] * 0.01)
                weight.add_(update, alpha=-group['lr'] * max(1, weight.shape[0] / weight[0].numel()) ** 0.5)
