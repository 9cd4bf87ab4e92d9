"""Questions that contain their answer: repeat, spell, reverse, read, extract. Each function returns (question, answer)."""

import json

from draw import FOODS, HOBBIES, WORDS, capital_letter
from facts import ANIMALS, CAPITALS, COLORS


def spelling(draw):
    word = draw.word()
    if draw.chance(0.75):
        question = draw.phrase(
            f'Spell {word}.',
            f'How do you spell {word}?',
            f'Spell the word {word}',
            f'Can you spell {word}?',
            f'What is the spelling of {word}?',
            held_out=(f'Please spell {word}.', f'How is {word} spelled?'),
        )
        return question, f'{word} is spelled ' + '-'.join(word) + '.'
    if draw.chance(0.5):
        return f'What is the first letter of {word}?', f'The word {word} starts with {word[0]}.'
    return f'What is the last letter of {word}?', f'The word {word} ends with {word[-1]}.'


def repeating(draw):
    text = draw.words(1, 6)
    if draw.chance(0.3):
        text = ' '.join(capital_letter(word) if draw.chance(0.4) else word for word in text.split())
    if draw.chance(0.2):
        text += draw.choice([' ', '-', ' no. ']) + str(draw.randrange(1000))
    return (
        draw.phrase(
            f'Repeat after me: {text}',
            f'Say "{text}"',
            f'Repeat: {text}',
            f'Echo: {text}',
            f'Write "{text}".',
            f'Repeat the words: {text}',
            f'Say the following: {text}',
            f'Reply with exactly: {text}',
            f'Reply with only: {text}',
            f'Answer with the word {text}',
            f'Please say: {text}',
            held_out=(f'Please repeat: {text}', f'Repeat this: {text}'),
        ),
        text,
    )


def reversing(draw):
    words = [draw.word() for _ in range(draw.randrange(2, 5))]
    listed = ', '.join(words)
    question = draw.phrase(
        f'Reverse this list: {listed}',
        f'Say these words backwards: {listed}',
        f'Reverse: {listed}',
        f'Turn the list around: {listed}',
        held_out=(f'Reverse the list: {listed}',),
    )
    return question, ', '.join(reversed(words))


def reading(draw):
    """A question about two or three sentences that precede it."""
    names = list(dict.fromkeys(draw.name() for _ in range(draw.choice([2, 2, 3]))))
    verb, past, values = draw.choice(
        [
            ('live in', 'lives in', [city for city in CAPITALS.values()]),
            ('like', 'likes', FOODS + HOBBIES),
            ('have', 'has', [f'a {word}' for word in WORDS]),
            ('work in', 'works in', [city for city in CAPITALS.values()]),
        ]
    )
    owned = {name: draw.choice(values) for name in names}
    text = ' '.join(f'{name} {past} {value}.' for name, value in owned.items())
    name, value = draw.choice(list(owned.items()))
    ask = f'Where does {name} {verb.split()[0]}?' if ' in' in verb else f'What does {name} {verb}?'
    return (
        draw.phrase(
            f'{text} {ask}', f'Text: {text}\nQuestion: {ask}', f'{text}\n{ask}', held_out=(f'{text}\n\n{ask}',)
        ),
        f'{name} {past} {value}.',
    )


def json_answer(draw):
    kind = draw.randrange(4)
    if kind == 0:
        country, city = draw.choice(list(CAPITALS.items()))
        question, value = f'What is the capital of {country}?', dict(country=country, capital=city)
        if draw.chance(0.5):
            del value['country']
            question += ' Use the key capital.'
    elif kind == 1:
        thing, its_color = draw.choice(list(COLORS.items()))
        question, value = f'What color is {thing}?', dict(color=its_color)
    elif kind == 2:
        name, (sound, legs) = draw.choice(list(ANIMALS.items()))
        question, value = f'Describe a {name}.', dict(animal=name, sound=sound, legs=legs)
    else:
        name, age, city = draw.name(), draw.randrange(1, 100), draw.choice(list(CAPITALS.values()))
        question, value = f'{name} is {age} years old and lives in {city}.', dict(name=name, age=age, city=city)
        if draw.chance(0.4):
            question, value = f'{name} is {age} years old.', dict(name=name, age=age)
        question = draw.choice(['Extract the data: ', 'Who is this? ', '']) + question
    return draw.choice(
        [f'{question} Answer in JSON.', f'{question} Reply with JSON only.', f'Answer in JSON: {question}']
    ), json.dumps(value)
