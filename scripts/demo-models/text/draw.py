"""Random source of the training chats.

A `Draw` is a seeded random generator for one split: training or held out. A checksum assigns number pairs and made-up words to a
split, and held-out phrasings are never trained. So the evaluation asks only questions that training has never shown.
"""
import random
import zlib

WORDS = (
    'cat dog sun moon tree house water apple green light music happy river stone cloud bread paper table chair horse '
    'tiger snake plant ocean beach storm night smile laugh dream world hello peace heart brave candy lemon grape mango '
    'onion carrot potato garden window flower summer winter spring orange purple yellow silver planet rocket castle '
    'dragon forest island bridge camera guitar pencil school friend mother father sister animal rabbit monkey turtle '
    'spider strawberry banana coffee letter number basket pocket butter market doctor engine signal mirror'
).split()
NAMES = (
    'Anna Ben Clara David Emma Frank Grace Henry Iris Jack Kate Leo Mia Noah Olga Paul Rosa Sam Tina Victor Alice Bob '
    'Carol Dan Eve Maria John Lucy Peter Sara'
).split()
FOODS = 'pizza pasta apples soup rice bread cheese salad cake noodles'.split()
HOBBIES = 'reading swimming cooking running painting chess music hiking dancing singing'.split()
PLACES = 'river forest garden beach castle bridge'.split()

CONSONANTS = 'b c d f g h j k l m n p r s t v w z br ch cl dr fl gr kl pr sh st th tr qu'.split()
VOWELS = 'a e i o u a e i o u y ai ea ee oo ou'.split()
ENDINGS = ['', '', '', 'n', 'r', 's', 't', 'l', 'm', 'ck', 'nd', 'x']
HELD_OUT_PART = 8  # one in 8 pairs and made-up words is held out


def in_held_out(text):
    return zlib.crc32(text.encode()) % HELD_OUT_PART == 0


class Draw(random.Random):
    def __init__(self, seed, held_out=False):
        super().__init__(seed)
        self.held_out = held_out

    def chance(self, probability):
        return self.random() < probability

    def phrase(self, *usual, held_out=()):
        """Chooses a phrasing. Held-out phrasings appear only in the evaluation."""
        return self.choice(held_out if self.held_out and held_out else usual)

    def pair(self, pick):
        """Calls `pick()` until the pair belongs to this split."""
        for _ in range(200):
            a, b = pick()
            if in_held_out(f'{a},{b}') == self.held_out:
                return a, b
        raise RuntimeError('no pair of this split was found')

    def made_up_word(self):
        while True:
            if self.chance(0.25):
                word = ''.join(self.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(self.randrange(2, 9)))
            else:
                word = ''.join(self.choice(CONSONANTS) + self.choice(VOWELS) for _ in range(self.randrange(1, 4)))
                word += self.choice(ENDINGS)
            if in_held_out(word) == self.held_out:
                return word

    def word(self, made_up=0.5):
        return self.made_up_word() if self.held_out or self.chance(made_up) else self.choice(WORDS)

    def words(self, low, high, made_up=0.5):
        return ' '.join(self.word(made_up) for _ in range(self.randrange(low, high + 1)))

    def name(self):
        return self.made_up_word().capitalize() if self.held_out or self.chance(0.5) else self.choice(NAMES)


def capital_letter(text):
    return text[0].upper() + text[1:]


def informal(draw, question):
    """Sometimes changes the question to informal spelling."""
    if draw.chance(0.15):
        question = question.lower()
    if draw.chance(0.15):
        question = question.rstrip('?.!')
    if draw.chance(0.08):
        question = draw.choice(['Please tell me: ', 'Hi! ', 'Hey, ', 'Quick question: ']) + question
    return question
