"""Questions about a picture, each with its only right answer."""
import collections
import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent.parent / 'image'))
from scenes import COLOURS, PLACES, SHAPES
from wording import COLOUR_WORDS, NOUNS, article

NUMBERS = ['no', 'one', 'two', 'three', 'four']
WHERE = {
    'center': 'in the middle',
    'left': 'on the left',
    'right': 'on the right',
    'top': 'at the top',
    'bottom': 'at the bottom',
    'top left': 'in the top left corner',
    'top right': 'in the top right corner',
    'bottom left': 'in the bottom left corner',
    'bottom right': 'in the bottom right corner',
}
UNKNOWN = 'I cannot make out any coloured shapes in this picture.'
NO_PICTURE = 'There is no picture in this chat. Send me one, and I will say what is on it.'
OFF_TOPIC = 'I can only describe pictures of coloured shapes.'
ABOUT = 'I am Viso, a small demo model. I can describe pictures of coloured shapes.'
HELLO = 'Hello! Send me a picture of coloured shapes, and I will say what is on it.'
WELCOME = 'You are welcome.'
GROUND_WORDS = ['ground', 'background', 'background', 'background', 'backdrop']


def plural(noun):
    return noun + ('es' if noun.endswith(('s', 'x')) else 's')


def joined(parts):
    return parts[0] if len(parts) == 1 else ', '.join(parts[:-1]) + ' and ' + parts[-1]


def counted(count, noun):
    return article(noun) if count == 1 else f'{NUMBERS[count]} {plural(noun)}'


def sentence(text):
    return text[0].upper() + text[1:] + '.'


def groups(figures, key):
    """Counts figures by key, in the order of first appearance."""
    return collections.Counter(map(key, figures))


def count_sentence(count, noun):
    """A sentence such as `There are two stars.`"""
    if count == 1:
        return f'There is one {noun}.'
    return f'There are {NUMBERS[count]} {plural(noun)}.'


def description(picture):
    """The picture in one phrase: `two orange triangles on a purple ground`."""
    ground = article(picture.ground) + ' ground'
    if not picture.figures:
        return f'{ground} without any shapes'
    kinds = groups(picture.figures, lambda figure: f'{figure.colour} {figure.shape}')
    return joined([counted(count, kind) for kind, count in kinds.items()]) + f' on {ground}'


class Asking:
    """Questions about one picture, and their answers."""

    def __init__(self, draw, picture):
        self.draw, self.picture = draw, picture

    def ask(self):
        """Returns `(question, answer)`. chats.py varies the question further."""
        kinds, weights = zip(*KINDS)
        question, answer = getattr(self, self.draw.choices(kinds, weights)[0])()
        return question, UNKNOWN if self.picture.ground is None else answer

    def shape_word(self, shape):
        draw = self.draw
        return shape if draw.chance(0.7) else draw.choice(NOUNS[shape])

    def colour_word(self, colour):
        draw = self.draw
        return colour if draw.chance(0.8) else draw.choice(COLOUR_WORDS[colour])

    def some_shape(self):
        """A shape, more often one in the picture, so that yes and no are both common answers."""
        there = [figure.shape for figure in self.picture.figures]
        return self.draw.choice(there) if there and self.draw.chance(0.6) else self.draw.choice(SHAPES)

    def some_colour(self):
        there = [figure.colour for figure in self.picture.figures]
        return self.draw.choice(there) if there and self.draw.chance(0.6) else self.draw.choice(list(COLOURS))

    def describe(self):
        return self.draw.choice(DESCRIBE), sentence(description(self.picture)) if self.picture.ground else UNKNOWN

    def places(self):
        figures, ground = self.picture.figures, self.picture.ground or ''
        parts = [f'{article(f"{figure.colour} {figure.shape}")} {WHERE[figure.place]}' for figure in figures]
        on = f'on {article(ground or "red")} ground'
        return self.draw.choice(PLACED), sentence(f'{joined(parts)}, {on}' if parts else f'{on[3:]} without any shapes')

    def count(self):
        return self.draw.choice(COUNT).format(self.draw.choice(THINGS)), count_sentence(len(self.picture.figures), 'shape')

    def count_some(self):
        """Asks for the number of figures of one shape, one colour, or both."""
        shape, colour = self.some_shape(), self.some_colour()
        roll = self.draw.random()
        if roll < 0.6:
            count = sum(figure.shape == shape for figure in self.picture.figures)
            return self.draw.choice(COUNT).format(plural(self.shape_word(shape))), count_sentence(count, shape)
        if roll < 0.8:
            count = sum(figure.colour == colour for figure in self.picture.figures)
            asked = f'{self.colour_word(colour)} {self.draw.choice(THINGS)}'
            return self.draw.choice(COUNT).format(asked), count_sentence(count, f'{colour} shape')
        count = sum(figure.shape == shape and figure.colour == colour for figure in self.picture.figures)
        asked = f'{self.colour_word(colour)} {plural(self.shape_word(shape))}'
        return self.draw.choice(COUNT).format(asked), count_sentence(count, f'{colour} {shape}')

    def ground(self):
        word = self.draw.choice(GROUND_WORDS)
        return self.draw.choice(GROUND).format(word), f'The ground is {self.picture.ground}.'

    def ground_is(self):
        colour, ground = self.some_colour(), self.picture.ground
        if ground and self.draw.chance(0.5):
            colour = ground
        asked = self.draw.choice(GROUND_IS).format(self.draw.choice(GROUND_WORDS), self.colour_word(colour))
        return asked, f'{"Yes" if colour == ground else "No"}, the ground is {ground}.'

    def present(self):
        """Asks whether there is a figure of one shape, one colour, or both."""
        shape, colour = self.some_shape(), self.some_colour()
        roll = self.draw.random()
        if roll < 0.6:
            noun, word, fits = shape, self.shape_word(shape), lambda figure: figure.shape == shape
        elif roll < 0.75:
            noun = f'{colour} shape'
            word, fits = f'{self.colour_word(colour)} {self.draw.choice(NOUNS[None])}', lambda figure: figure.colour == colour
        else:
            noun = f'{colour} {shape}'
            word = f'{self.colour_word(colour)} {self.shape_word(shape)}'
            fits = lambda figure: figure.shape == shape and figure.colour == colour
        found = groups(filter(fits, self.picture.figures), lambda figure: f'{figure.colour} {figure.shape}')
        asked = self.draw.choice(PRESENT).format(article(word))
        if not found:
            return asked, f'No, there is no {noun}.'
        verb = 'is' if next(iter(found.values())) == 1 else 'are'
        return asked, f'Yes, there {verb} {joined([counted(count, kind) for kind, count in found.items()])}.'

    def shapes(self):
        kinds = groups(self.picture.figures, lambda figure: figure.shape)
        asked = self.draw.choice(WHICH_SHAPES).format(self.draw.choice(['shapes', 'shapes', 'figures', 'forms']))
        return asked, sentence(joined([counted(count, kind) for kind, count in kinds.items()]) if kinds else 'there are no shapes')

    def colours(self):
        found = list(groups(self.picture.figures, lambda figure: figure.colour))
        ground = f'the ground is {self.picture.ground}'
        if not found:
            return self.draw.choice(WHICH_COLOURS), sentence(f'there are no shapes, and {ground}')
        those = 'the shape is' if len(self.picture.figures) == 1 else 'the shapes are'
        return self.draw.choice(WHICH_COLOURS), sentence(f'{those} {joined(found)}, and {ground}')

    def colour_of(self):
        shape = self.some_shape()
        found = [figure.colour for figure in self.picture.figures if figure.shape == shape]
        asked = self.draw.choice(COLOUR_OF).format(self.shape_word(shape))
        return asked, self.told(shape, found, lambda colour: f'is {colour}', lambda colour: f'are {colour}')

    def where(self):
        shape = self.some_shape()
        found = [figure.place for figure in self.picture.figures if figure.shape == shape]
        asked = self.draw.choice(PLACE_OF).format(self.shape_word(shape))
        return asked, self.told(shape, found, lambda place: f'is {WHERE[place]}', lambda place: f'are {WHERE[place]}')

    def told(self, shape, values, one, many):
        if not values:
            return f'There is no {shape}.'
        if len(values) == 1:
            return f'The {shape} {one(values[0])}.'
        if len(set(values)) == 1:
            return f'The {NUMBERS[len(values)]} {plural(shape)} {many(values[0])}.'
        return f'There are {NUMBERS[len(values)]} {plural(shape)}: {joined(["one " + one(value) for value in values])}.'

    def as_json(self):
        kinds = groups(self.picture.figures, lambda figure: (figure.colour, figure.shape))
        shapes = [dict(count=count, colour=colour, shape=shape) for (colour, shape), count in kinds.items()]
        return self.draw.choice(AS_JSON), json.dumps(dict(ground=self.picture.ground, shapes=shapes))


KINDS = [
    ('describe', 34), ('places', 8), ('count', 7), ('count_some', 8), ('ground', 7), ('ground_is', 4), ('present', 9), ('shapes', 6),
    ('colours', 4), ('colour_of', 7), ('where', 7), ('as_json', 6),
]
DESCRIBE = [
    'What is on it?', 'What is on it?', 'What is in this picture?', 'What is in this image?', 'What is on this picture?', 'Describe the image.',
    'Describe this picture.', 'Describe it.', 'What do you see?', 'What can you see?', 'What does this picture show?', 'What does it show?',
    'What is shown here?', 'What is this?', 'Tell me what is on the picture.', 'Tell me what you see.', 'What is depicted?', 'Caption this.',
    'Write a caption for this image.', 'Describe this image in one sentence.', 'Describe what you see in the picture.', 'Look at this.',
    'Please describe the picture.', 'What am I looking at?', 'Can you see the picture?', 'What is in the photo?', 'What is on the drawing?',
    'Give me a short description of the image.', 'Explain this picture.', 'What did I draw?', 'What is drawn here?', 'Can you describe this?',
    'Say what is on the picture.', 'In a few words, what is on this picture?', 'What does the image contain?', 'Summarize the image.',
    'What is visible in this image?', 'What is on the screenshot?', 'Tell me about this image.', 'describe', 'and this?', 'image', '',
]
PLACED = [
    'Describe the picture in detail.', 'Describe it in detail.', 'Describe the image and say where everything is.', 'What is where?',
    'What is where on the picture?', 'Where are the shapes?', 'Say what is on it and where.', 'Give me a detailed description.',
    'Describe the layout.', 'Describe the positions of the shapes.', 'Describe what is on it and where it is.',
]
THINGS = ['shapes', 'shapes', 'figures', 'objects', 'things']
COUNT = [
    'How many {} are there?', 'How many {} are there?', 'How many {} do you see?', 'How many {} are on the picture?', 'Count the {}.',
    'How many {} are in the image?', 'What is the number of {}?', 'how many {}', 'How many {} can you see?', 'How many {} does it show?',
]
GROUND = [
    'What colour is the {}?', 'What colour is the {}?', 'Which colour is the {}?', 'Which colour has the {}?', 'What is the colour of the {}?',
    'Tell me the colour of the {}.', 'What {} colour do you see?', 'And the {}?', 'What is the {} colour?', 'Name the colour of the {}.',
]
GROUND_IS = ['Is the {} {}?', 'Is the colour of the {} {}?', 'Is it a {} that is {}?', 'The {} is {}, right?']
PRESENT = [
    'Is there {}?', 'Is there {}?', 'Is there {} on the picture?', 'Do you see {}?', 'Can you see {}?', 'Does it show {}?', 'Is {} in it?',
    'Does the picture contain {}?', 'Is there {} in the image?', 'Is that {}?', 'Is this {}?', 'Does it have {}?',
]
WHICH_SHAPES = [
    'What {} are there?', 'Which {} are there?', 'What {} do you see?', 'Which {} do you see?', 'Name the {}.', 'List the {}.',
    'What {} are in the picture?', 'Which {} are on it?', 'What kind of {} are these?', 'List all {} in the image.',
]
WHICH_COLOURS = [
    'What colours are there?', 'Which colours do you see?', 'What colours do you see?', 'Name the colours.', 'List the colours.',
    'Which colours are in the picture?', 'What colours are used in the image?', 'What are the colours?',
]
COLOUR_OF = [
    'What colour is the {}?', 'What colour is the {}?', 'Which colour is the {}?', 'What is the colour of the {}?', 'Which colour has the {}?',
    'Tell me the colour of the {}.', 'What is the {} painted in?', 'In which colour is the {}?',
]
PLACE_OF = [
    'Where is the {}?', 'Where is the {}?', 'Where is the {} on the picture?', 'Where do you see the {}?', 'In which part of the image is the {}?',
    'What is the position of the {}?', 'Where can I find the {}?',
]
AS_JSON = [
    'Describe the picture as JSON.', 'Answer in JSON.', 'Give me JSON.', 'What is on it? Answer as JSON.', 'Return a JSON object that describes the image.',
    'Describe this image in JSON format.', 'List the shapes as JSON.', 'Output JSON only.', 'What is in this image? Respond with JSON.', 'as json',
]
