"""Trains the tokenizer and the text encoder: the encoder learns to tell the scene from its prompt. See README.md."""
import argparse
import time

import torch

import tokenizer as bpe
from checkpoint import save
from scene import Draw
from text_encoder import FACTS, Reader, TextEncoder, facts_of
from wording import Wording


def examples(draw, tokenizer, count):
    wording, ids, facts = Wording(draw), [], []
    for _ in range(count):
        scene = draw.scene()
        ids.append(tokenizer.encode(wording.prompt(scene)))
        facts.append(facts_of(scene))
    return torch.tensor(ids), torch.tensor(facts)


def evaluate(encoder, reader, tokenizer):
    ids, facts = examples(Draw(7, held_out=True), tokenizer, 500)
    with torch.no_grad():
        answers = torch.stack([scores.argmax(1) for scores in reader(encoder(ids))], 1)
    right = answers == facts
    print('held-out scenes read right:', right.all(1).float().mean().item(), 'by fact', [round(x, 3) for x in right.float().mean(0).tolist()], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='checkpoint')
    parser.add_argument('--minutes', type=float, default=4)
    parser.add_argument('--batch', type=int, default=128)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    draw = Draw(1)
    tokenizer = bpe.train([Wording(draw).prompt(draw.scene()) for _ in range(20000)])
    tokenizer.save(f'{options.out}/tokenizer')
    encoder, reader = TextEncoder(len(tokenizer.tokens), tokenizer.ids[bpe.END]), Reader()
    print('tokens', len(tokenizer.tokens), 'parameters', sum(weight.numel() for weight in encoder.parameters()), flush=True)
    optimizer = torch.optim.AdamW([*encoder.parameters(), *reader.parameters()], lr=2e-3, betas=(0.9, 0.98), weight_decay=0.01)
    started, reported, step = time.time(), 0, 0
    while (elapsed := time.time() - started) < 60 * options.minutes:
        done = elapsed / (60 * options.minutes)
        optimizer.param_groups[0]['lr'] = 2e-3 * min(1, (step + 1) / 100) * min(1, max(0.02, (1 - done) / 0.6))
        ids, facts = examples(draw, tokenizer, options.batch)
        ids = ids[:, : int((ids != encoder.end).sum(1).max()) + 1]
        loss = sum(torch.nn.functional.cross_entropy(scores, facts[:, i]) for i, scores in enumerate(reader(encoder(ids)))) / len(FACTS)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        step += 1
        if elapsed - reported > 15:
            reported = elapsed
            print(f'{elapsed:.0f} s, step {step}, loss {loss.item():.4f}', flush=True)
    evaluate(encoder, reader, tokenizer)
    save(f'{options.out}/text_encoder.pt', encoder)
    save(f'{options.out}/reader.pt', reader)


if __name__ == '__main__':
    main()
