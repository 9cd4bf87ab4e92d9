"""Weights on disk, replaced in one step so that a checkpoint can be exported while training goes on."""
import os

import torch


def save(path, module):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(module.state_dict(), f'{path}.part')
    os.replace(f'{path}.part', path)


def load(path, module):
    module.load_state_dict(torch.load(path))
    return module
