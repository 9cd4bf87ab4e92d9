"""Trains Pico from scratch or from a checkpoint, on one CPU thread. See README.md."""
import argparse
import pathlib
import sys
import time

import torch

import corpus
import draw
import facts

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
import bpe
import checkpoint
from model import Model, Shape
from muon import Muon


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='checkpoint', help='checkpoint folder to write')
    parser.add_argument('--init', help='checkpoint folder to go on from')
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--layers', type=int, default=4)
    parser.add_argument('--dim', type=int, default=256)
    parser.add_argument('--heads', type=int, default=4)
    parser.add_argument('--kv-heads', type=int, default=2)
    parser.add_argument('--ff', type=int, default=640)
    parser.add_argument('--vocab', type=int, default=1024)
    parser.add_argument('--tokens', type=int, default=4096, help='tokens per step')
    parser.add_argument('--muon-lr', type=float, default=0.02)
    parser.add_argument('--adam-lr', type=float, default=0.003)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--save-every', type=float, default=3, help='minutes between checkpoints')
    return parser.parse_args()


def new_tokenizer(size):
    """Trains a tokenizer that never merges content words with their leading space; see bpe.py."""
    lists = [
        draw.WORDS,
        draw.NAMES,
        draw.FOODS,
        draw.HOBBIES,
        draw.PLACES,
        facts.CAPITALS,
        facts.CAPITALS.values(),
        facts.COLORS,
        facts.COLORS.values(),
        facts.ANIMALS,
    ]
    content = {word.lower() for texts in lists for text in texts for word in text.split()} - {'a', 'an', 'the'}
    content |= set('bcdefghijklmnopqrstuvwyz')
    examples = draw.Draw(0)
    return bpe.Tokenizer(bpe.train([corpus.chat_text(corpus.sample(examples)) for _ in range(5000)], size, content))


def encode(chat, tokenizer, examples):
    ids, targets = [], []
    for text, learned in corpus.render(chat, examples):
        piece = tokenizer.encode(text)
        ids += piece
        targets += piece if learned else [-100] * len(piece)
    return ids, targets


def batches(tokenizer, seed, tokens_per_batch, longest):
    """Endless batches of chats of similar length."""
    examples = draw.Draw(seed)
    while True:
        pool = [encode(corpus.sample(examples), tokenizer, examples) for _ in range(1500)]
        pool = sorted(
            (chat for chat in pool if len(chat[0]) <= longest), key=lambda chat: len(chat[0]) + examples.random()
        )
        groups = [[]]
        for chat in pool:
            if (len(groups[-1]) + 1) * len(chat[0]) > tokens_per_batch:
                groups.append([])
            groups[-1].append(chat)
        examples.shuffle(groups)
        for group in groups:
            yield tensors(group)


def tensors(group):
    length = max(len(ids) for ids, _ in group)
    ids = torch.zeros(len(group), length, dtype=torch.long)
    targets = torch.full((len(group), length), -100)
    for row, (chat_ids, chat_targets) in enumerate(group):
        ids[row, : len(chat_ids)] = torch.tensor(chat_ids)
        targets[row, : len(chat_targets) - 1] = torch.tensor(chat_targets[1:])
    return ids, targets


def main():
    options = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.init:
        model, tokenizer = checkpoint.load(options.init)
    else:
        tokenizer = new_tokenizer(options.vocab)
        model = Model(
            Shape(
                vocab=len(tokenizer.tokens),
                dim=options.dim,
                layers=options.layers,
                heads=options.heads,
                kv_heads=options.kv_heads,
                ff=options.ff,
            )
        )
    print('parameters', sum(weight.numel() for weight in model.parameters()), flush=True)

    matrices = [weight for name, weight in model.named_parameters() if weight.dim() > 1 and name != 'emb.weight']
    others = [weight for name, weight in model.named_parameters() if weight.dim() == 1 or name == 'emb.weight']
    optimizers = [
        (Muon(matrices), options.muon_lr),
        (torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0), options.adam_lr),
    ]

    started, reported, saved, smooth = time.time(), 0, 0, None
    for step, (ids, targets) in enumerate(batches(tokenizer, options.seed, options.tokens, model.shape.context)):
        elapsed = time.time() - started
        done = elapsed / (60 * options.minutes)
        if done >= 1:
            break
        rate = min(1, (step + 1) / 50) * min(1, max(0.01, (1 - done) / 0.6))
        for optimizer, top_rate in optimizers:
            optimizer.param_groups[0]['lr'] = top_rate * rate
            optimizer.zero_grad()
        with torch.autocast('cpu', dtype=torch.bfloat16):
            loss = model(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        smooth = loss.item() if smooth is None else 0.97 * smooth + 0.03 * loss.item()
        if elapsed - reported > 15:
            reported = elapsed
            print(f'{elapsed:.0f} s, step {step}, loss {smooth:.4f}', flush=True)
        if elapsed - saved > 60 * options.save_every:
            saved = elapsed
            checkpoint.save(options.out, model, tokenizer)
    checkpoint.save(options.out, model, tokenizer)


if __name__ == '__main__':
    main()
