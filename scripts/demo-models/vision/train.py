"""Trains the vision model Viso from scratch or from a checkpoint, on a GPU if available. See README.md."""
import argparse
import multiprocessing
import os
import pathlib
import sys
import time

import numpy
import torch
import torch.nn.functional as F

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'toolkit'))
import bpe
import checkpoint
from answers import Asking
from chats import IMAGE, Chats, render
from model import Shape
from muon import Muon
from painter import Painter, pack
from picto import Picto, generate, requests
from scenes import draw_picture
from vit import EncoderShape, VisionModel, VisionShape

POOL = 8  # chats of 8 batches are sorted by length together
HELD_OUT_SEED = 10_000


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--out', default='checkpoint', help='checkpoint folder to write')
    parser.add_argument('--init', help='checkpoint folder to go on from')
    parser.add_argument('--minutes', type=float, default=8)
    parser.add_argument('--batch', type=int, default=1024, help='chats about one picture in a step')
    parser.add_argument('--muon-lr', type=float, default=0.02)
    parser.add_argument('--adam-lr', type=float, default=0.003)
    parser.add_argument('--workers', type=int, default=max(1, (os.cpu_count() or 2) - 2), help='processes that make up chats')
    parser.add_argument('--picto', default='../../../apps/provider/demo-models/picto', help='folder of the demo image model')
    parser.add_argument('--generated', type=int, default=40_000, help='pictures that the image model draws before the training')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--report-every', type=float, default=60, help='seconds between checks on held-out pictures')
    return parser.parse_args()


def new_tokenizer(size=704):
    chats = Chats(0)
    texts = [text for index in range(6000) for text, _ in render(chats.chat((1, 1, 2, 0)[index % 4])[0])]
    return bpe.Tokenizer(bpe.train([text.replace(IMAGE, '\n') for text in texts], size, set()))


def encode(messages, tokenizer, image_tokens):
    """Returns tokens, with -1 for image tokens, and which tokens are learned."""
    ids, learned = [], []
    for text, is_learned in render(messages):
        before = len(ids)
        for index, part in enumerate(text.split(IMAGE)):
            ids += [-1] * image_tokens * (index > 0) + tokenizer.encode(part)
        learned += [is_learned] * (len(ids) - before)
    return ids, learned


def batch_of(samples, size):
    """Arrays of a batch: tokens, targets, and the painter's encoding of the pictures."""
    length = -(-max(len(ids) for ids, _, _ in samples) // 16) * 16
    ids = numpy.zeros((len(samples), length), dtype=numpy.int16)
    targets = numpy.full((len(samples), length), -100, dtype=numpy.int16)
    for row, (chat_ids, learned, _) in enumerate(samples):
        ids[row, : len(chat_ids)] = chat_ids
        following = numpy.where(learned[1:], chat_ids[1:], -100)
        targets[row, : len(following)] = following
    pictures = [picture for _, _, pictures in samples for picture in pictures]
    return ids, targets, pack(pictures, size) if pictures else None


def batches(chats, tokenizer, shape, count, images):
    """Yields batches of `count` chats with `images` pictures each, of similar length."""
    while True:
        pool = []
        for _ in range(POOL * count):
            messages, pictures = chats.chat(images)
            pool.append((*encode(messages, tokenizer, shape.tokens), pictures))
        pool.sort(key=lambda sample: len(sample[0]) + chats.draw.random())
        groups = [pool[start : start + count] for start in range(0, len(pool), count)]
        chats.draw.shuffle(groups)
        for group in groups:
            yield batch_of(group, shape.image)


def work(queue, tokenizer, shape, seed, count, generated):
    """Worker that fills the queue with training steps: chats about one picture, and some about two or none."""
    chats = Chats(seed, generated=generated)
    one, two, none = (batches(chats, tokenizer, shape, max(1, part), images) for part, images in ((count, 1), (count // 5, 2), (count // 5, 0)))
    while True:
        queue.put([next(one), next(two)])
        queue.put([next(one), next(none)])


class Trainer:
    def __init__(self, model, device, seed):
        self.model, self.device = model.to(device), device
        self.painter = Painter(model.shape.encoder.image, device, seed)

    def run(self, batch, flaws=True):
        """Returns scores and targets of the learned tokens of a batch."""
        ids, targets = (torch.from_numpy(part).to(self.device).long() for part in batch[:2])
        pictures = None if batch[2] is None else self.painter.paint(torch.from_numpy(batch[2]), flaws)
        learned = targets.ne(-100)
        with torch.autocast(self.device, dtype=torch.bfloat16):
            logits = self.model.logits(ids, pictures, learned)
        return logits.float(), targets[learned], learned

    def learn(self, step):
        """Accumulates the gradients of all batches of a step, weighted by their number of tokens."""
        total, mean = sum((targets >= 0).sum() for _, targets, _ in step), 0
        for batch in step:
            logits, targets, _ = self.run(batch)
            loss = F.cross_entropy(logits, targets, reduction='sum') / float(total)
            loss.backward()
            mean = mean + loss.detach()
        return mean

    @torch.no_grad()
    def accuracy(self, held_out, flaws=True):
        """Share of answers without a wrong token. With greedy decoding, the engine would give the same answers."""
        right = asked = 0
        for batch in held_out:
            logits, targets, learned = self.run(batch, flaws)
            hit = torch.zeros_like(learned)
            hit[learned] = logits.argmax(-1).eq(targets)
            starts = learned & ~F.pad(learned, (1, 0))[:, :-1]
            answer = starts.flatten().cumsum(0)[learned.flatten()] - 1
            wrong = torch.zeros(int(starts.sum()), device=self.device).index_add_(0, answer, (~hit[learned]).float())
            right, asked = right + int((wrong == 0).sum()), asked + len(wrong)
        return right / asked


def held_out_sets(tokenizer, shape, count, generated):
    chats = Chats(HELD_OUT_SEED, held_out=True)
    sets = {'described': [], 'drawn by the image model': []}
    for name, pictures in (('described', [draw_picture(chats.draw) for _ in range(count)]), ('drawn by the image model', generated)):
        for start in range(0, len(pictures), 512):
            samples = []
            for picture in pictures[start : start + 512]:
                asked = [('user', f'{IMAGE}\nWhat is on it?'), ('assistant', Asking(chats.draw, picture).describe()[1])]
                samples.append((*encode(asked, tokenizer, shape.tokens), [picture]))
            sets[name].append(batch_of(samples, shape.image))
    for name, images in (('one picture', 1), ('two pictures', 2), ('no picture', 0)):
        source = batches(chats, tokenizer, shape, count // POOL, images)
        sets[name] = [next(source) for _ in range(POOL)]
    return sets


def report(trainer, sets):
    parts = [f'{name} {trainer.accuracy(held_out):.3f}' for name, held_out in sets.items() if held_out]
    parts.append(f'described without flaws {trainer.accuracy(sets["described"], False):.3f}')
    return 'held-out answers: ' + ', '.join(parts)


def draw_with_image_model(painter, options):
    """Returns pictures of the image model for training, and held-out pictures."""
    if not options.generated:
        return [], []
    started = time.time()
    picto = Picto(options.picto, painter.device)
    sets = [
        generate(picto, painter, requests(count, seed, held_out))
        for count, seed, held_out in ((options.generated, options.seed, False), (max(1, options.generated // 20), HELD_OUT_SEED, True))
    ]
    print(f'{time.time() - started:.0f} s for pictures by the image model, of which {len(sets[0])} and {len(sets[1])} are used', flush=True)
    return sets


def start(options):
    if options.init:
        return checkpoint.load(options.init, lambda shape: VisionModel(VisionShape.of(shape)))
    tokenizer = new_tokenizer()
    decoder = Shape(vocab=len(tokenizer.tokens), dim=192, layers=4, heads=3, kv_heads=1, ff=512, context=4096)
    return VisionModel(VisionShape(EncoderShape(), decoder)), tokenizer


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    model, tokenizer = start(options)
    print('parameters', sum(weight.numel() for weight in model.parameters()), flush=True)

    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    trainer, shape = Trainer(model, device, options.seed), model.shape.encoder
    generated, held_out = draw_with_image_model(trainer.painter, options)
    queue = multiprocessing.Queue(4 * options.workers)
    for worker in range(options.workers):
        seed = options.seed * 1000 + worker + 1
        multiprocessing.Process(target=work, args=(queue, tokenizer, shape, seed, options.batch, generated), daemon=True).start()
    sets = held_out_sets(tokenizer, shape, min(2048, options.batch), held_out)

    of_muon = lambda name, weight: weight.dim() == 2 and name not in ('decoder.emb.weight', 'encoder.position')
    matrices = [weight for name, weight in model.named_parameters() if of_muon(name, weight)]
    others = [weight for name, weight in model.named_parameters() if not of_muon(name, weight)]
    optimizers = [
        (Muon(matrices), options.muon_lr),
        (torch.optim.AdamW(others, betas=(0.9, 0.95), weight_decay=0), options.adam_lr),
    ]
    started, reported, step, mean = time.time(), 0, 0, 0
    while (elapsed := time.time() - started) < 60 * options.minutes:
        left = 1 - elapsed / (60 * options.minutes)
        rate = min(1, (step + 1) / 100) * min(1, max(0.01, left / 0.7))
        for optimizer, top_rate in optimizers:
            optimizer.param_groups[0]['lr'] = top_rate * rate
            optimizer.zero_grad()
        loss = trainer.learn(queue.get())
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        mean, step = (loss if step == 0 else 0.98 * mean + 0.02 * loss), step + 1
        if step % 100 == 0 or step in (1, 10):
            print(f'{elapsed:.0f} s, step {step}, loss {float(mean):.4f}, {queue.qsize()} steps waiting', flush=True)
        if elapsed - reported > options.report_every:
            reported = elapsed
            print(report(trainer, sets), flush=True)
            checkpoint.save(options.out, model, tokenizer)
    print(report(trainer, sets), flush=True)
    checkpoint.save(options.out, model, tokenizer)


if __name__ == '__main__':
    main()
