"""Byte-level BPE with the file format of CLIP's tokenizer: `vocab.json`, `merges.txt`, lower case, `</w>` ends a word."""
import collections
import json
import os
import re

START, END = '<|startoftext|>', '<|endoftext|>'
LENGTH = 48
# CLIP's pattern for lower-case ASCII text. Other letters are split differently here; training has none.
WORD = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[a-z]+|[0-9]|[^\sa-z0-9]+")


def byte_letters():
    """Printable characters for the 256 bytes, in the order of CLIP's vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in plain}
    for extra, byte in enumerate(byte for byte in range(256) if byte not in letters):
        letters[byte] = chr(256 + extra)
    return letters


LETTERS = byte_letters()


def letters_of(word):
    letters = [LETTERS[byte] for byte in word.encode()]
    return [*letters[:-1], letters[-1] + '</w>']


def words_of(text):
    return WORD.findall(re.sub(r'\s+', ' ', text.strip()).lower())


def merged(letters, pair):
    out, index = [], 0
    while index < len(letters):
        if tuple(letters[index : index + 2]) == pair:
            out.append(''.join(pair))
            index += 2
        else:
            out.append(letters[index])
            index += 1
    return out


def train(texts, least=30):
    """Trains merges until every word with at least `least` occurrences is one token."""
    counts = collections.Counter(word for text in texts for word in words_of(text))
    words = [(letters_of(word), count) for word, count in counts.items() if count >= least]
    merges = []
    while True:
        pairs = collections.Counter()
        for letters, count in words:
            for pair in zip(letters, letters[1:]):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs.items(), key=lambda item: (item[1], item[0]))[0]
        merges.append(best)
        words = [(merged(letters, best), count) for letters, count in words]
    single = list(LETTERS.values())
    tokens = [*single, *(letter + '</w>' for letter in single)]
    tokens += [token for token in dict.fromkeys(''.join(pair) for pair in merges) if token not in tokens]
    return Tokenizer([*tokens, START, END], merges)


class Tokenizer:
    def __init__(self, tokens, merges):
        self.tokens, self.merges = tokens, merges
        self.ids = {token: index for index, token in enumerate(tokens)}
        self.rank = {pair: index for index, pair in enumerate(merges)}
        self.known = {}

    @staticmethod
    def load(folder):
        with open(f'{folder}/vocab.json') as file:
            ids = json.load(file)
        with open(f'{folder}/merges.txt') as file:
            merges = [tuple(line.split()) for line in file.read().splitlines()[1:]]
        return Tokenizer(sorted(ids, key=ids.get), merges)

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        special = {'bos_token': START, 'eos_token': END, 'pad_token': END, 'unk_token': END}
        with open(f'{folder}/vocab.json', 'w') as file:
            json.dump(self.ids, file, ensure_ascii=False)
        with open(f'{folder}/merges.txt', 'w') as file:
            file.write('#version: 0.2\n' + ''.join(f'{a} {b}\n' for a, b in self.merges))
        with open(f'{folder}/special_tokens_map.json', 'w') as file:
            json.dump(special, file, indent=2)
        with open(f'{folder}/tokenizer_config.json', 'w') as file:
            config = {'tokenizer_class': 'CLIPTokenizer', 'model_max_length': LENGTH, 'do_lower_case': True, 'add_prefix_space': False}
            json.dump({**config, **special}, file, indent=2)

    def encode_word(self, word):
        if word not in self.known:
            letters = letters_of(word)
            while True:
                ranked = [self.rank[pair] for pair in zip(letters, letters[1:]) if pair in self.rank]
                if not ranked:
                    break
                letters = merged(letters, self.merges[min(ranked)])
            self.known[word] = [self.ids[letter] for letter in letters]
        return self.known[word]

    def encode(self, text, length=LENGTH):
        """Start token, words, end token, and further end tokens as padding; longer texts are truncated."""
        ids = [token for word in words_of(text) for token in self.encode_word(word)][: length - 2]
        ids = [self.ids[START], *ids, self.ids[END]]
        return ids + [self.ids[END]] * (length - len(ids))
