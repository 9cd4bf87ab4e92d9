"""Saves and loads weights. Files are replaced atomically, so that a checkpoint can be exported during training."""
import os

import torch


def save(path, module):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(module.state_dict(), f'{path}.part')
    os.replace(f'{path}.part', path)


def load(path, module):
    module.load_state_dict(torch.load(path))
    return module
