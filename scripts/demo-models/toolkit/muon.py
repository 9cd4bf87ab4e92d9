"""Muon: an optimizer for the matrices inside layers. Momentum with an orthogonalized update.

Method: Keller Jordan and others, "Muon: An optimizer for hidden layers in neural networks" (2024). Embeddings and norms
are trained with AdamW, as the text recommends.
"""
import torch


def orthogonalize(matrix, steps=5):
    """Newton-Schulz steps towards the nearest orthogonal matrices. Five steps bring the singular values near 1."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).float()


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr=0.02, momentum=0.95, weight_decay=0.01):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for shape in dict.fromkeys(weight.shape for weight in group['params']):
                self.step_alike([weight for weight in group['params'] if weight.shape == shape], group)

    def step_alike(self, weights, group):
        """Updates all matrices of one shape in a batch, which needs fewer kernel launches."""
        directions = []
        for weight in weights:
            velocity = self.state[weight].setdefault('velocity', torch.zeros_like(weight))
            velocity.lerp_(weight.grad, 1 - group['momentum'])
            directions.append(weight.grad.lerp(velocity, group['momentum']))
        updates = orthogonalize(torch.stack(directions))
        scale = max(1, weights[0].shape[0] / weights[0].shape[1]) ** 0.5
        for weight, update in zip(weights, updates):
            weight.mul_(1 - group['lr'] * group['weight_decay'])
            weight.add_(update, alpha=-group['lr'] * scale)


class KernelMuon(torch.optim.Optimizer):
    """Muon for convolution kernels, each reshaped to a matrix of outputs by inputs."""

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
