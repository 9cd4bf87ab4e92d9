"""Synthetic training chats.

`sample(draw)` returns a chat as a list of (role, text). `render(chat)` applies the chat template, and marks which pieces of text
are training targets.
"""
import copying
import refusals
import skills
import sums
import tools
from draw import FOODS, HOBBIES, Draw, capital_letter
from facts import CAPITALS

SYSTEM_PROMPTS = [
    'You are a helpful assistant.',
    'You are a helpful, concise assistant.',
    'Be brief.',
    'You are a friendly assistant.',
    'Answer the question.',
    'You are Pico, a tiny demo model.',
    'You are a helpful, respectful and honest assistant.',
]
AT_ONCE = [  # (skill, weight): answered without a think section
    (skills.greeting, 6),
    (skills.capital, 12),
    (skills.color, 6),
    (copying.spelling, 18),
    (skills.definition, 9),
    (skills.opposite, 3),
    (skills.animal, 3),
    (skills.calendar, 4),
    (skills.counting, 6),
    (skills.story, 2),
    (skills.joke, 2),
    (copying.repeating, 10),
    (copying.reversing, 5),
    (copying.reading, 7),
    (copying.json_answer, 5),
    (refusals.unknown_topic, 4),
    (refusals.unknown_words, 6),
    (refusals.unknown_entry, 5),
    (refusals.foreign_text, 2),
    (refusals.tool_needed, 3),
]
AFTER_THINKING = [
    (sums.addition, 20),
    (sums.subtraction, 20),
    (sums.multiplication, 20),
    (sums.division, 8),
    (sums.word_problem, 5),
    (sums.comparison, 26),
    (sums.count_letters, 11),
    (sums.count_one_letter, 8),
]
SKILLS = AT_ONCE + AFTER_THINKING
NO_THINKING = '<think>\n\n</think>\n\n'  # prefix of the answer in the chat template when thinking is disabled


def pick(draw, weighted):
    return draw.choices([item for item, _ in weighted], [weight for _, weight in weighted])[0]


def turn(draw, weighted=SKILLS):
    """One question and its answer, as a user and an assistant text."""
    parts = pick(draw, weighted)(draw)
    if len(parts) == 2:
        return parts
    question, working, answer = parts
    return question, f'<think>\n{working}\n</think>\n\n{answer}'


def turns(draw, count):
    """Questions with answers. The template removes think sections from all but the last, so most of those have none."""
    messages = []
    for index in range(count):
        weighted = SKILLS if index == count - 1 or draw.chance(0.2) else AT_ONCE
        question, answer = turn(draw, weighted)
        messages += [('user', question), ('assistant', answer)]
    return messages


def remembered(draw):
    """Phrasings of a user's statement, the reply, phrasings of a later question, and the answer."""
    name, food, hobby = draw.name(), draw.choice(FOODS), draw.choice(HOBBIES)
    city = draw.choice(list(CAPITALS.values()))
    word, number = draw.word(), draw.randrange(2, 100)
    return draw.choice(
        [
            (
                [
                    f'My name is {name}.',
                    f"Hi, I'm {name}.",
                    f'I am {name}',
                    f'Call me {name}.',
                    f'Hello, my name is {name}',
                ],
                f'Nice to meet you, {name}!',
                ['What is my name?', "What's my name?", 'Do you remember my name?', 'Who am I?'],
                f'Your name is {name}.',
            ),
            (
                [f'I like {food}.', f'My favorite food is {food}.', f'I love {food}'],
                f'{capital_letter(food)} sounds delicious!',
                ['What food do I like?', 'What is my favorite food?'],
                f'You like {food}.',
            ),
            (
                [f'My hobby is {hobby}.', f'I enjoy {hobby}.'],
                f'{capital_letter(hobby)} is a great hobby!',
                ['What is my hobby?', 'What do I enjoy?'],
                f'You enjoy {hobby}.',
            ),
            (
                [f'I live in {city}.', f'My home is {city}.', f'I am from {city}.'],
                f'{city} is a nice place!',
                ['Where do I live?', 'Where am I from?', 'Which city do I live in?'],
                f'You live in {city}.',
            ),
            (
                [f'The secret word is {word}.', f'Remember the word {word}.', f'My code word is {word}.'],
                f'I will remember {word}.',
                ['What is the secret word?', 'Which word did I tell you?', 'What was the word?'],
                f'The word is {word}.',
            ),
            (
                [f'I am {number} years old.', f'My age is {number}.'],
                f'{number} is a good age!',
                ['How old am I?', 'What is my age?'],
                f'You are {number} years old.',
            ),
            (
                [f'My cat is called {name}.', f'I have a cat named {name}.'],
                f'{name} is a lovely name for a cat!',
                ['What is my cat called?', "What is my cat's name?"],
                f'Your cat is called {name}.',
            ),
        ]
    )


def memory_chat(draw):
    """A chat that asks for facts from earlier turns or the system prompt."""
    statements, reply, questions, answer = remembered(draw)
    told = [('user', draw.choice(statements)), ('assistant', reply)]
    other = remembered(draw)
    if draw.chance(0.25) and other[1][-8:] != reply[-8:] and other[2] != questions:
        told += [('user', draw.choice(other[0])), ('assistant', other[1])]
    return told + turns(draw, draw.choice([0, 1, 1, 2])) + [('user', draw.choice(questions)), ('assistant', answer)]


def instructed_chat(draw):
    """A chat whose system prompt contains a name or fact that the answer must use."""
    if draw.chance(0.5):
        name = draw.name()
        system = draw.choice([f'You are {name}, a helpful assistant.', f'Your name is {name}.', f'You are {name}.'])
        question = draw.choice(['Who are you?', 'What is your name?', "What's your name?", 'Introduce yourself.'])
        return [('system', system), ('user', question), ('assistant', f"I'm {name}, a tiny demo model.")]
    name = draw.name()
    system = draw.choice(
        [
            f"The user's name is {name}.",
            f'You are talking to {name}.',
            f'You are a helpful assistant. The user is called {name}.',
        ]
    )
    return [
        ('system', system),
        ('user', draw.choice(['What is my name?', "What's my name?", 'Who am I?'])),
        ('assistant', f'Your name is {name}.'),
    ]


def wordy_system_prompt(draw):
    """Long, irrelevant instructions, as real clients send."""
    lines = []
    for _ in range(draw.randrange(1, 9) if draw.chance(0.8) else draw.randrange(10, 45)):
        line = capital_letter(draw.words(4, 14, made_up=0.1)) + draw.choice(['.', ':', '!'])
        lines.append(draw.choice(['', '', '- ', '# ', 'You must not ', 'Always ']) + line)
    return draw.choice(SYSTEM_PROMPTS) + '\n' + '\n'.join(lines)


def system_prompt(draw):
    chance = draw.random()
    return wordy_system_prompt(draw) if chance < 0.05 else draw.choice(SYSTEM_PROMPTS) if chance < 0.3 else ''


def sample(draw):
    chance = draw.random()
    if chance < 0.13:
        return tools.tool_chat(draw, lambda d: turn(d), draw.choice(['', '', draw.choice(SYSTEM_PROMPTS)]))
    if chance < 0.16:
        return instructed_chat(draw)
    messages = memory_chat(draw) if chance < 0.23 else turns(draw, draw.choice([1, 1, 1, 1, 2, 2, 3]))
    system = system_prompt(draw)
    return [('system', system), *messages] if system else messages


def render(chat, draw=None):
    """Returns [(text, is_learned)]. Earlier turns lose their think section, as in the template, and are then context only."""
    pieces = []
    last_user = max(index for index, (role, _) in enumerate(chat) if role == 'user')
    for index, (role, text) in enumerate(chat):
        if role != 'assistant':
            pieces.append((f'<|im_start|>{"user" if role == "tool" else role}\n{text}<|im_end|>\n', False))
            continue
        thought = '</think>' in text
        learned = not thought or index > last_user
        switched_off = index > last_user and draw is not None and draw.chance(0.04)
        if thought and (not learned or switched_off):
            text = text.split('</think>')[1].lstrip('\n')
        pieces += [
            ('<|im_start|>assistant\n' + (NO_THINKING if switched_off else ''), False),
            (text + '<|im_end|>', learned),
            ('\n', False),
        ]
    return pieces


def chat_text(chat):
    return ''.join(text for text, _ in render(chat))


if __name__ == '__main__':
    examples = Draw(0)
    for _ in range(12):
        print(chat_text(sample(examples)), end='-----\n')
