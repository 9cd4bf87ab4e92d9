"""Writes prompts for scenes. Some phrasings and adjectives are held out from training, for the evaluation."""
from scene import OPPOSITE

NOUNS = {
    'circle': ['circle', 'circle', 'circle', 'disc', 'disk', 'dot', 'ball'],
    'square': ['square', 'square', 'square', 'box', 'block'],
    'triangle': ['triangle', 'triangle', 'pyramid'],
    'star': ['star'],
    'heart': ['heart'],
    'ring': ['ring', 'ring', 'donut', 'hoop'],
    'cross': ['cross', 'cross', 'plus sign', 'plus'],
    'diamond': ['diamond', 'diamond', 'rhombus'],
    'crescent': ['crescent', 'crescent', 'moon', 'crescent moon'],
    'arrow': ['arrow'],
    None: ['shape', 'figure', 'thing', 'object'],
}
COLOUR_WORDS = {
    'red': ['red', 'red', 'red', 'crimson', 'scarlet'],
    'orange': ['orange'],
    'yellow': ['yellow', 'yellow', 'yellow', 'golden'],
    'green': ['green', 'green', 'green', 'emerald'],
    'blue': ['blue', 'blue', 'blue', 'navy'],
    'purple': ['purple', 'purple', 'violet'],
    'pink': ['pink'],
    'brown': ['brown'],
    'black': ['black'],
    'white': ['white'],
    'gray': ['gray', 'grey'],
    'cyan': ['cyan', 'cyan', 'turquoise', 'teal'],
}
SIZE_WORDS = {'small': ['small', 'small', 'little', 'tiny'], 'large': ['large', 'large', 'big', 'big', 'huge', 'giant']}
IDLE = ['nice', 'simple', 'beautiful', 'bright', 'plain', 'flat', 'lovely', 'clean', 'shiny', 'solid', 'pretty', 'bold']
IDLE_HELD_OUT = ['neat', 'elegant', 'glossy']
PLACE_WORDS = {
    'center': ['in the center', 'in the middle', 'at the center', 'centered', 'in the centre'],
    'left': ['on the left', 'at the left', 'on the left side', 'to the left', 'on the left half'],
    'right': ['on the right', 'at the right', 'on the right side', 'to the right', 'on the right half'],
    'top': ['at the top', 'on top', 'in the upper half', 'near the top', 'up high'],
    'bottom': ['at the bottom', 'in the lower half', 'near the bottom', 'down low'],
    'top left': ['in the top left corner', 'at the top left', 'in the upper left corner', 'in the top left'],
    'top right': ['in the top right corner', 'at the top right', 'in the upper right corner', 'in the top right'],
    'bottom left': ['in the bottom left corner', 'at the bottom left', 'in the lower left corner', 'in the bottom left'],
    'bottom right': ['in the bottom right corner', 'at the bottom right', 'in the lower right corner', 'in the bottom right'],
}
BEFORE = {
    'left': ['to the left of', 'left of', 'on the left of'],
    'right': ['to the right of', 'right of', 'on the right of'],
    'top': ['above', 'over', 'on top of'],
    'bottom': ['below', 'under', 'beneath', 'underneath'],
}
STARTS = 'b c d f g h j k l m n p r s t v w y z br ch cl cr dr fl gl gr pl qu sh sk st str th tr wh'.split()
ENDS = ['', '', '', *'d e g h k l m n p r s t y ck er ing ld ng nt ss ted tch'.split()]
LEAD = [''] * 8 + [
    'a picture of ', 'an image of ', 'a drawing of ', 'draw ', 'draw me ', 'paint ', 'show me ', 'please draw ', 'an illustration of ',
    'a photo of ', 'generate ', 'create an image of ', 'make a picture of ', 'i want ', 'a painting of ', 'clip art of ', 'a logo with ',
    'an icon of ', 'a minimalist poster with ', 'please make ', 'give me ', 'there is ', 'we see ',
]
LEAD_HELD_OUT = ['a sketch of ', 'could you draw ', 'please generate an image showing ']
TAIL = [''] * 10 + ['.', '!', ', please', ', flat design', ', minimalist', ', vector art', ', high quality', ' please', ', simple style']
GROUND = [
    'on a {} background', 'on a {} background', 'on a {} background', 'on {}', 'against a {} background', 'with a {} background',
    'on a {} ground', 'in front of a {} background', 'against {}', 'over a {} background', 'on a plain {} background',
    'on a {} canvas', 'on {} paper', 'on a solid {} background', 'on {} ground',
]
GROUND_HELD_OUT = ['set on a {} background', 'before a {} background', 'against a {} canvas']


def article(phrase):
    return ('an ' if phrase[0] in 'aeiou' else 'a ') + phrase


class Wording:
    def __init__(self, draw):
        self.draw = draw

    def pick(self, usual, held_out=()):
        return self.draw.choice(held_out if self.draw.held_out and held_out and self.draw.chance(0.5) else usual)

    def noun(self, figure):
        """Noun phrase of a figure, without an article: `small nice red circle`."""
        draw = self.draw
        words = []
        if figure.size:
            words.append(draw.choice(SIZE_WORDS[figure.size]))
        if draw.chance(0.15):
            words.append(self.pick(IDLE, IDLE_HELD_OUT) if draw.held_out or draw.chance(0.6) else self.made_up())
        if figure.colour:
            words.append(draw.choice(COLOUR_WORDS[figure.colour]))
        return ' '.join([*words, draw.choice(NOUNS[figure.shape])])

    def made_up(self):
        """A meaningless word, so that the model learns to ignore unknown words."""
        letters, parts = self.draw.choice, self.draw.randrange(1, 4)
        return ''.join(letters(STARTS) + letters('aeiou') for _ in range(parts)) + letters(ENDS)

    def lead(self):
        draw = self.draw
        if draw.held_out or draw.chance(0.85):
            return self.pick(LEAD, LEAD_HELD_OUT)
        return ' '.join(self.made_up() for _ in range(draw.randrange(1, 4))) + draw.choice([' ', ' ', ' of ', ' a picture of ', ', '])

    def thing(self, figure):
        noun = self.noun(figure)
        roll = self.draw.random()
        if roll < 0.12:
            return noun
        if roll < 0.2:
            return ('one ' if self.draw.chance(0.5) else 'the ') + noun
        if roll < 0.26 and figure.colour and figure.shape:
            bare = self.draw.choice(NOUNS[figure.shape])
            size = self.draw.choice(SIZE_WORDS[figure.size]) + ' ' if figure.size else ''
            return article(f'{size}{bare} in {self.draw.choice(COLOUR_WORDS[figure.colour])}')
        return article(noun)

    def figures(self, scene):
        """Description of the figures, without the ground."""
        draw, first = self.draw, scene.figures[0]
        if len(scene.figures) == 1:
            place = draw.choice(PLACE_WORDS[first.place]) if first.place else ''
            if place and draw.chance(0.15):
                return f'{place}, {self.thing(first)}'
            return f'{self.thing(first)} {place}'.strip()
        second = scene.figures[1]
        one, other = self.thing(first), self.thing(second)
        relation = scene.relation
        if relation == 'two':
            noun = self.noun(first)
            return draw.choice(['two ', 'two ', 'a pair of ']) + noun + ('es' if noun.endswith(('s', 'x')) else 's')
        if relation == 'and':
            return draw.choice([f'{one} and {other}', f'{one} and {other}', f'{one}, {other}', f'{one} with {other}'])
        if relation == 'beside':
            return f'{one} {draw.choice(["beside", "next to", "and, next to it,", "by", "followed by"])} {other}'
        if relation in OPPOSITE:
            return f'{one} {draw.choice(BEFORE[relation])} {other}'
        here, there = draw.choice(PLACE_WORDS[first.place]), draw.choice(PLACE_WORDS[second.place])
        joint = draw.choice([' and ', ' and ', ', '])
        if draw.chance(0.15):
            return f'{here} {one}{joint}{there} {other}'
        return f'{one} {here}{joint}{other} {there}'

    def prompt(self, scene):
        draw, figures = self.draw, self.figures(scene)
        colour = draw.choice(COLOUR_WORDS[scene.ground]) if scene.ground else None
        roll = draw.random()
        if colour is None:
            text = figures
        elif roll < 0.06:
            text = f'{figures}, {colour} background'
        elif roll < 0.1:
            text = f'{figures}. the background is {colour}'
        elif roll < 0.14:
            text = f'{article(colour)} background with {figures}'
        elif roll < 0.17:
            text = f'on a {colour} background, {figures}'
        else:
            frame = self.pick(GROUND, GROUND_HELD_OUT)
            if not draw.held_out and draw.chance(0.06):
                frame = f'{self.made_up()} ' + draw.choice(['a {} background', 'on a {} background', 'a {} canvas'])
            text = f'{figures} {frame.format(colour)}'.replace(' a orange', ' an orange').replace(' a emerald', ' an emerald')
        text = self.lead() + text + draw.choice(TAIL)
        return text[0].upper() + text[1:] if draw.chance(0.3) else text
