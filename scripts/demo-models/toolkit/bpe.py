"""A small byte-level BPE: trainer and encoder. llama.cpp reads it as `gpt2` with the `qwen2` pre-tokenizer.

A word has the same tokens in every context, so that the model can copy it: `Paris` in a question, and `Paris` in the JSON of a
tool call. For this, merges are learned on words without their leading space. Only common function words are merged with the
space, as the last merges.
"""
import collections
import json
import re

# llama.cpp's qwen2 pattern for ASCII text. Other text has no merges, so its splits do not matter.
PRE_TOKEN = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = [
    '<|endoftext|>',
    '<|im_start|>',
    '<|im_end|>',
    '<think>',
    '</think>',
    '<tool_call>',
    '</tool_call>',
    '<tools>',
    '</tools>',
    '<tool_response>',
    '</tool_response>',
]
SPECIAL_SPLIT = re.compile('(' + '|'.join(re.escape(token) for token in SPECIAL) + ')')
LED_WORD = re.compile(r'[^A-Za-z0-9][A-Za-z]+')


def byte_letters():
    """GPT-2's printable characters for the 256 bytes."""
    letters, extra = [], 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            letters.append(chr(byte))
        else:
            letters.append(chr(extra))
            extra += 1
    return letters


LETTERS = byte_letters()
SPACE = LETTERS[32]


def as_letters(text):
    return ''.join(LETTERS[byte] for byte in text.encode())


def count_pre_tokens(texts):
    counts = collections.Counter()
    for text in texts:
        for part in SPECIAL_SPLIT.split(text):
            if part not in SPECIAL:
                counts.update(PRE_TOKEN.findall(part))
    return counts


def train(texts, size, never_after_space):
    """`never_after_space`: content words, which are never merged with a leading space."""
    counts = count_pre_tokens(texts)
    inner = collections.Counter()
    for word, count in counts.items():
        inner[word[1:] if LED_WORD.fullmatch(word) and not word.startswith("'") else word] += count
    led = [
        (word[1:], count)
        for word, count in counts.most_common()
        if word[0] == ' ' and word[1:].isalpha() and word.islower()
    ]
    spaced = [word for word, _ in led if word not in never_after_space][:160]

    tokens, merges = list(LETTERS), []
    words = [(list(as_letters(word)), count) for word, count in inner.items()]
    while len(tokens) + len(SPECIAL) + len(spaced) < size:
        pairs = collections.Counter()
        for letters, count in words:
            for pair in zip(letters, letters[1:]):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs.items(), key=lambda item: (item[1], item[0]))[0]
        add_merge(tokens, merges, best)
        words = [(merge_pair(letters, best), count) for letters, count in words]
    for word in spaced:
        if as_letters(word) in tokens:
            add_merge(tokens, merges, (SPACE, as_letters(word)))
    return dict(tokens=tokens + SPECIAL, merges=merges)


def add_merge(tokens, merges, pair):
    merges.append(pair)
    if ''.join(pair) not in tokens:
        tokens.append(''.join(pair))


def merge_pair(letters, pair):
    merged, index = [], 0
    while index < len(letters):
        if tuple(letters[index : index + 2]) == pair:
            merged.append(''.join(pair))
            index += 2
        else:
            merged.append(letters[index])
            index += 1
    return merged


class Tokenizer:
    def __init__(self, vocabulary):
        self.tokens = vocabulary['tokens']
        self.merges = [tuple(pair) for pair in vocabulary['merges']]
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.rank = {pair: index for index, pair in enumerate(self.merges)}
        self.known = {}

    @staticmethod
    def load(path):
        with open(path) as file:
            return Tokenizer(json.load(file))

    def save(self, path):
        with open(path, 'w') as file:
            json.dump(dict(tokens=self.tokens, merges=self.merges), file)

    def encode_word(self, word):
        if word not in self.known:
            letters = list(as_letters(word))
            while True:
                ranked = [self.rank[pair] for pair in zip(letters, letters[1:]) if pair in self.rank]
                if not ranked:
                    break
                letters = merge_pair(letters, self.merges[min(ranked)])
            self.known[word] = [self.ids[letter] for letter in letters]
        return self.known[word]

    def encode(self, text):
        ids = []
        for part in SPECIAL_SPLIT.split(text):
            if part in SPECIAL:
                ids.append(self.ids[part])
            else:
                for word in PRE_TOKEN.findall(part):
                    ids += self.encode_word(word)
        return ids
