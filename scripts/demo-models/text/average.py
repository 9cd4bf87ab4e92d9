"""Averages the weights of several checkpoints of one training. The average often answers better than each checkpoint.

python3 average.py out checkpoint checkpoint...
"""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
import checkpoint


def main(out, folders):
    models = [checkpoint.load(folder) for folder in folders]
    weights = [model.state_dict() for model, _ in models]
    mean = {name: torch.stack([each[name] for each in weights]).mean(0) for name in weights[0]}
    model, tokenizer = models[0]
    model.load_state_dict(mean)
    checkpoint.save(out, model, tokenizer)


if __name__ == '__main__':
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
