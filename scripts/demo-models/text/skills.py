"""Single questions that Pico answers without a think section. Each function returns (question, answer)."""

from draw import PLACES, capital_letter, informal
from facts import ANIMALS, CAPITALS, COLORS, DAYS, DEFINITIONS, JOKES, MIXED_COLORS, MONTHS, OPPOSITES

ABOUT_PICO = (
    "I'm Pico, a tiny demo model. I was trained from scratch on simple made-up chats, so I only know a few things."
)
ABILITIES = (
    'I can say hello, do small sums, name capitals and colors, spell words, explain simple things and call tools. '
    'I am only a tiny demo model!'
)
SMALL_TALK = [
    (
        'Hello|Hi|Hey|Hello!|Hi there|Hi!|hello there|Good day|hey!|Yo|Hello Pico|Hi Pico!',
        'Hello! How can I help you today?',
    ),
    ('Good morning|Good morning!|Morning!', 'Good morning! How can I help you today?'),
    ('Good evening|Good evening!', 'Good evening! How can I help you today?'),
    (
        "How are you?|How's it going?|How are you doing today?|How do you feel?|Hi, how are you?",
        "I'm doing well, thank you! How can I help you?",
    ),
    (
        "Who are you?|What are you?|What is your name?|Introduce yourself.|Tell me about yourself.|What's your name?|"
        'Are you a human?|Are you an AI?|Which model are you?|Who made you?',
        ABOUT_PICO,
    ),
    ('What can you do?|Help|What do you know?|How can you help me?|What can I ask you?|help me', ABILITIES),
    ('Thank you|Thanks!|thanks|Thank you so much!|ty|Great, thanks', "You're welcome! Anything else?"),
    ('Bye|Goodbye!|See you later|Good night|bye bye', 'Goodbye! Have a nice day.'),
    ('Say hi|Say hello|Say hello to me|Say hi to the world|Say hello world|Say hello!', 'Hello, world!'),
    ('ok|OK|I see.|Good|Nice!|Cool|great|Yes|test|Testing|ping', 'All right! What would you like to know?'),
]


def greeting(draw):
    questions, answer = draw.choice(SMALL_TALK)
    return draw.choice(questions.split('|')), answer


def capital(draw):
    country, city = draw.choice(list(CAPITALS.items()))
    if draw.chance(0.2) and country != 'England' and city != 'London':
        question = draw.phrase(
            f'Which country has the capital {city}?',
            f'{city} is the capital of which country?',
            f'What country is {city} the capital of?',
            held_out=(f'Of which country is {city} the capital?',),
        )
        return informal(draw, question), f'{city} is the capital of {country}.'
    question = draw.phrase(
        f'What is the capital of {country}?',
        f'Capital of {country}?',
        f"What's the capital city of {country}?",
        f'Tell me the capital of {country}.',
        f'Name the capital of {country}.',
        f'capital of {country}',
        f'Which city is the capital of {country}?',
        f'What is the capital of {country}? Answer in one sentence.',
        f'Can you name the capital of {country}?',
        f'Do you know which city is the capital of {country}?',
        held_out=(f'Do you know the capital of {country}?', f'Which is the capital city of {country}?'),
    )
    return informal(draw, question), f'The capital of {country} is {city}.'


def color(draw):
    if draw.chance(0.25):
        (one, other), mixed = draw.choice(list(MIXED_COLORS.items()))
        one, other = draw.sample([one, other], 2)
        question = draw.phrase(
            f'What color do you get if you mix {one} and {other}?',
            f'Mix {one} and {other}',
            f'What is {one} mixed with {other}?',
            f'Which color comes from {one} and {other}?',
            held_out=(f'What color is {one} and {other} mixed?',),
        )
        return informal(draw, question), f'If you mix {one} and {other}, you get {mixed}.'
    thing, its_color = draw.choice(list(COLORS.items()))
    question = draw.phrase(
        f'What color is {thing}?',
        f'What is the color of {thing}?',
        f'Which colour is {thing}?',
        f'What colour is {thing}?',
        f'Can you tell me what color {thing} is?',
        held_out=(f'Tell me the color of {thing}.', f'Which color is {thing}?'),
    )
    return informal(draw, question), f'{capital_letter(thing)} is {its_color}.'


def definition(draw):
    term, meaning = draw.choice(list(DEFINITIONS.items()))
    question = draw.phrase(
        f'What is {term}?',
        f'Explain {term}.',
        f'Define {term}.',
        f'Tell me about {term}.',
        f'What does {term} mean?',
        f"What's {term}?",
        f'Explain {term} in one sentence.',
        f'Can you define {term}?',
        f'Please explain {term}.',
        held_out=(f'Can you explain what {term} is?', f'Please define {term}.'),
    )
    return informal(draw, question), f'{capital_letter(term)} is {meaning}.'


def opposite(draw):
    one, other = draw.sample(draw.choice(OPPOSITES), 2)
    question = draw.phrase(
        f'What is the opposite of {one}?',
        f'Opposite of {one}?',
        f'Give me the opposite of {one}.',
        f'What word is the opposite of {one}?',
        f'Name the opposite of {one}.',
        held_out=(f'Tell me the opposite of {one}.',),
    )
    return informal(draw, question), f'The opposite of {one} is {other}.'


def animal(draw):
    name, (sound, legs) = draw.choice(list(ANIMALS.items()))
    if draw.chance(0.5):
        return (
            informal(draw, draw.choice([f'What sound does a {name} make?', f'What does a {name} say?'])),
            f'A {name} says {sound}!',
        )
    return informal(draw, f'How many legs does a {name} have?'), f'A {name} has {legs} legs.'


def calendar(draw):
    names, unit, span = draw.choice([(DAYS, 'day', 'days of the week'), (MONTHS, 'month', 'months of the year')])
    if draw.chance(0.2):
        question = draw.choice([f'List the {span}.', f'What are the {span}?', f'Name the {span}.'])
        return informal(draw, question), f'The {span} are ' + ', '.join(names[:-1]) + f' and {names[-1]}.'
    index, after = draw.randrange(len(names)), draw.chance(0.6)
    word = 'after' if after else 'before'
    question = draw.phrase(
        f'What {unit} comes {word} {names[index]}?',
        f'Which {unit} is {word} {names[index]}?',
        f'Which {unit} follows {names[index]}?' if after else f'Name the {unit} before {names[index]}.',
        held_out=(f'Which {unit} comes {word} {names[index]}?',),
    )
    neighbour = names[(index + (1 if after else -1)) % len(names)]
    return informal(draw, question), f'{neighbour} comes {word} {names[index]}.'


def counting(draw):
    first = draw.choice([1, 1, draw.randrange(0, 60)])
    last = first + draw.randrange(2, 13)
    if draw.chance(0.15):
        return f'Count down from {last} to {first}.', ', '.join(map(str, range(last, first - 1, -1))) + '.'
    question = draw.phrase(
        f'Count from {first} to {last}.',
        f'Count from {first} to {last}',
        f'Count to {last} starting at {first}',
        f'Please count from {first} to {last}.',
        f'Count up to {last} from {first}',
        held_out=(f'Please count from {first} up to {last}.',),
    )
    return question, ', '.join(map(str, range(first, last + 1))) + '.'


def story(draw):
    name, creature, place = draw.name(), draw.choice(list(ANIMALS)), draw.choice(PLACES)
    question = draw.choice(
        [f'Tell me a story about {name} and a {creature}.', f'Write a short story about {name} and a {creature}']
    )
    if draw.chance(0.5):
        question, creature, place = f'Tell me a story about {name}.', 'dog', 'river'
    return question, (
        f'Once upon a time, {name} found a little {creature} near the {place}. The {creature} was lost and sad. '
        f'{name} helped the {creature} find its way home, and they became best friends. The end.'
    )


def joke(draw):
    return draw.choice(
        ['Tell me a joke.', 'Say something funny', 'Do you know a joke?', 'Make me laugh', 'tell me a joke']
    ), draw.choice(JOKES)
