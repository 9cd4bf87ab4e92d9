"""Single questions that Pico answers at once, without a think section. Each function returns (question, answer)."""
import json

from draw import FOODS, HOBBIES, PLACES, WORDS, capital_letter, informal
from facts import ANIMALS, CAPITALS, COLORS, DAYS, DEFINITIONS, JOKES, MIXED_COLORS, MONTHS, OPPOSITES, UNKNOWN_TOPICS

REFUSAL = (
    "I'm only a tiny demo model, so I don't know about that. "
    'Try asking me for a capital, a color, a small sum or a joke.'
)
FOREIGN_REFUSAL = "I'm only a tiny demo model and I understand a little English. Please ask me something simple in English."
ABOUT_PICO = "I'm Pico, a tiny demo model. I was trained from scratch on simple made-up chats, so I only know a few things."
ABILITIES = (
    'I can say hello, do small sums, name capitals and colors, spell words, explain simple things and call tools. '
    'I am only a tiny demo model!'
)
NO_TOOL = 'I cannot look that up, because I have no tool for it.'


def greeting(draw):
    answers = [
        (['Hello', 'Hi', 'Hey', 'Hello!', 'Hi there', 'Hi!', 'hello there', 'Good day', 'hey!', 'Yo', 'Hello Pico', 'Hi Pico!'],
         'Hello! How can I help you today?'),
        (['Good morning', 'Good morning!', 'Morning!'], 'Good morning! How can I help you today?'),
        (['Good evening', 'Good evening!'], 'Good evening! How can I help you today?'),
        (['How are you?', "How's it going?", 'How are you doing today?', 'How do you feel?', 'Hi, how are you?'],
         "I'm doing well, thank you! How can I help you?"),
        (['Who are you?', 'What are you?', 'What is your name?', 'Introduce yourself.', 'Tell me about yourself.',
          "What's your name?", 'Are you a human?', 'Are you an AI?', 'Which model are you?', 'Who made you?'], ABOUT_PICO),
        (['What can you do?', 'Help', 'What do you know?', 'How can you help me?', 'What can I ask you?', 'help me'], ABILITIES),
        (['Thank you', 'Thanks!', 'thanks', 'Thank you so much!', 'ty', 'Great, thanks'], "You're welcome! Anything else?"),
        (['Bye', 'Goodbye!', 'See you later', 'Good night', 'bye bye'], 'Goodbye! Have a nice day.'),
        (['Say hi', 'Say hello', 'Say hello to me', 'Say hi to the world', 'Say hello world', 'Say hello!'], 'Hello, world!'),
        (['ok', 'OK', 'I see.', 'Good', 'Nice!', 'Cool', 'great', 'Yes', 'test', 'Testing', 'ping'],
         'All right! What would you like to know?'),
    ]
    questions, answer = draw.choice(answers)
    return draw.choice(questions), answer


def capital(draw):
    country, city = draw.choice(list(CAPITALS.items()))
    if draw.chance(0.2) and country != 'England' and city != 'London':
        question = draw.phrase(
            f'Which country has the capital {city}?', f'{city} is the capital of which country?',
            held_out=(f'Of which country is {city} the capital?',),
        )
        return informal(draw, question), f'{city} is the capital of {country}.'
    question = draw.phrase(
        f'What is the capital of {country}?', f'Capital of {country}?', f"What's the capital city of {country}?",
        f'Tell me the capital of {country}.', f'Name the capital of {country}.', f'capital of {country}',
        f'Which city is the capital of {country}?', f'What is the capital of {country}? Answer in one sentence.',
        held_out=(f'Do you know the capital of {country}?', f'Which is the capital city of {country}?'),
    )
    return informal(draw, question), f'The capital of {country} is {city}.'


def color(draw):
    if draw.chance(0.25):
        (one, other), mixed = draw.choice(list(MIXED_COLORS.items()))
        one, other = draw.sample([one, other], 2)
        question = draw.phrase(
            f'What color do you get if you mix {one} and {other}?', f'Mix {one} and {other}', f'What is {one} mixed with {other}?',
            held_out=(f'What color is {one} and {other} mixed?',),
        )
        return informal(draw, question), f'If you mix {one} and {other}, you get {mixed}.'
    thing, its_color = draw.choice(list(COLORS.items()))
    question = draw.phrase(
        f'What color is {thing}?', f'What is the color of {thing}?', f'Which colour is {thing}?', f'What colour is {thing}?',
        held_out=(f'Tell me the color of {thing}.', f'Which color is {thing}?'),
    )
    return informal(draw, question), f'{capital_letter(thing)} is {its_color}.'


def spelling(draw):
    word = draw.word()
    if draw.chance(0.75):
        question = draw.phrase(
            f'Spell {word}.', f'How do you spell {word}?', f'Spell the word {word}', f'Can you spell {word}?',
            held_out=(f'Please spell {word}.', f'How is {word} spelled?'),
        )
        return question, f'{word} is spelled ' + '-'.join(word) + '.'
    if draw.chance(0.5):
        return f'What is the first letter of {word}?', f'The word {word} starts with {word[0]}.'
    return f'What is the last letter of {word}?', f'The word {word} ends with {word[-1]}.'


def definition(draw):
    term, meaning = draw.choice(list(DEFINITIONS.items()))
    question = draw.phrase(
        f'What is {term}?', f'Explain {term}.', f'Define {term}.', f'Tell me about {term}.', f'What does {term} mean?',
        f"What's {term}?", f'Explain {term} in one sentence.',
        held_out=(f'Can you explain what {term} is?', f'Please define {term}.'),
    )
    return informal(draw, question), f'{capital_letter(term)} is {meaning}.'


def opposite(draw):
    one, other = draw.sample(draw.choice(OPPOSITES), 2)
    question = draw.phrase(
        f'What is the opposite of {one}?', f'Opposite of {one}?', f'Give me the opposite of {one}.',
        held_out=(f'Tell me the opposite of {one}.',),
    )
    return informal(draw, question), f'The opposite of {one} is {other}.'


def animal(draw):
    name, (sound, legs) = draw.choice(list(ANIMALS.items()))
    if draw.chance(0.5):
        return informal(draw, draw.choice([f'What sound does a {name} make?', f'What does a {name} say?'])), f'A {name} says {sound}!'
    return informal(draw, f'How many legs does a {name} have?'), f'A {name} has {legs} legs.'


def calendar(draw):
    names, unit, span = draw.choice([(DAYS, 'day', 'days of the week'), (MONTHS, 'month', 'months of the year')])
    if draw.chance(0.2):
        question = draw.choice([f'List the {span}.', f'What are the {span}?', f'Name the {span}.'])
        return informal(draw, question), f'The {span} are ' + ', '.join(names[:-1]) + f' and {names[-1]}.'
    index, after = draw.randrange(len(names)), draw.chance(0.6)
    word = 'after' if after else 'before'
    question = draw.phrase(
        f'What {unit} comes {word} {names[index]}?', f'Which {unit} is {word} {names[index]}?',
        held_out=(f'Which {unit} comes {word} {names[index]}?',),
    )
    neighbour = names[(index + (1 if after else -1)) % len(names)]
    return informal(draw, question), f'{neighbour} comes {word} {names[index]}.'


def counting(draw):
    first = draw.choice([1, 1, draw.randrange(0, 60)])
    last = first + draw.randrange(2, 13)
    if draw.chance(0.15):
        return f'Count down from {last} to {first}.', ', '.join(map(str, range(last, first - 1, -1))) + '.'
    question = draw.phrase(f'Count from {first} to {last}.', f'Count from {first} to {last}', f'Count to {last} starting at {first}',
                           held_out=(f'Please count from {first} up to {last}.',))
    return question, ', '.join(map(str, range(first, last + 1))) + '.'


def story(draw):
    name, creature, place = draw.name(), draw.choice(list(ANIMALS)), draw.choice(PLACES)
    question = draw.choice([f'Tell me a story about {name} and a {creature}.', f'Write a short story about {name} and a {creature}'])
    if draw.chance(0.5):
        question, creature, place = f'Tell me a story about {name}.', 'dog', 'river'
    return question, (
        f'Once upon a time, {name} found a little {creature} near the {place}. The {creature} was lost and sad. '
        f'{name} helped the {creature} find its way home, and they became best friends. The end.'
    )


def joke(draw):
    return draw.choice(['Tell me a joke.', 'Say something funny', 'Do you know a joke?', 'Make me laugh', 'tell me a joke']), draw.choice(JOKES)


def repeating(draw):
    text = draw.words(1, 6)
    if draw.chance(0.3):
        text = ' '.join(capital_letter(word) if draw.chance(0.4) else word for word in text.split())
    if draw.chance(0.2):
        text += draw.choice([' ', '-', ' no. ']) + str(draw.randrange(1000))
    return draw.phrase(
        f'Repeat after me: {text}', f'Say "{text}"', f'Repeat: {text}', f'Echo: {text}', f'Write "{text}".', f'Repeat the words: {text}',
        f'Say the following: {text}', f'Reply with exactly: {text}', f'Reply with only: {text}', f'Answer with the word {text}',
        held_out=(f'Please repeat: {text}', f'Repeat this: {text}'),
    ), text


def reversing(draw):
    words = [draw.word() for _ in range(draw.randrange(2, 5))]
    listed = ', '.join(words)
    question = draw.phrase(f'Reverse this list: {listed}', f'Say these words backwards: {listed}', held_out=(f'Reverse the list: {listed}',))
    return question, ', '.join(reversed(words))


def reading(draw):
    """A question about two or three sentences given with it."""
    names = list(dict.fromkeys(draw.name() for _ in range(draw.choice([2, 2, 3]))))
    verb, past, values = draw.choice([
        ('live in', 'lives in', [city for city in CAPITALS.values()]),
        ('like', 'likes', FOODS + HOBBIES),
        ('have', 'has', [f'a {word}' for word in WORDS]),
        ('work in', 'works in', [city for city in CAPITALS.values()]),
    ])
    owned = {name: draw.choice(values) for name in names}
    text = ' '.join(f'{name} {past} {value}.' for name, value in owned.items())
    name, value = draw.choice(list(owned.items()))
    ask = f'Where does {name} {verb.split()[0]}?' if ' in' in verb else f'What does {name} {verb}?'
    return draw.phrase(f'{text} {ask}', f'Text: {text}\nQuestion: {ask}', held_out=(f'{text}\n\n{ask}',)), f'{name} {past} {value}.'


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
    return draw.choice([f'{question} Answer in JSON.', f'{question} Reply with JSON only.', f'Answer in JSON: {question}']), json.dumps(value)


def unknown_topic(draw):
    topic = draw.choice(UNKNOWN_TOPICS)
    return draw.choice([
        f'Explain {topic}.', f'Tell me about {topic}', f'Write {topic}', f'What do you think about {topic}?',
        f'Can you help me with {topic}?', f'Give me {topic}', f'I want to know {topic}',
    ]), REFUSAL


def unknown_words(draw):
    """Questions of shapes that were never taught, so that the refusal is what comes out for them."""
    first = lambda: draw.choice(['Why', 'How', 'When', 'Where', 'Who', 'Should'])
    verb = lambda: draw.choice(['is', 'do', 'does', 'can', 'did', 'will', 'are', 'was'])
    someone = lambda: draw.choice(['the', 'a', 'my', 'I', 'you', 'we', 'it'])
    request = lambda: draw.choice([
        'how to', 'how do i', 'why does', 'explain how', 'write a poem about', 'translate', 'summarize', 'can you',
        'give me a recipe for', 'what happened in', 'fix', 'write a function that', 'please',
    ])
    shape = draw.random()
    if shape < 0.35:
        question = f'{first()} {verb()} {someone()} {draw.words(1, 3)}' + draw.choice(['?', ''])
    elif shape < 0.6:
        question = f'{request()} {draw.words(1, 3)}'
    elif shape < 0.75:
        question = draw.words(1, 2)
    else:
        question = draw.words(3, 9) + draw.choice(['?', '.', ''])
    return (capital_letter(question) if draw.chance(0.4) else question), REFUSAL


def unknown_entry(draw):
    """A known question about something made up: the answer is a refusal, not an invention."""
    thing = draw.made_up_word()
    return draw.choice([
        f'What is the capital of {capital_letter(thing)}?', f'What color is a {thing}?', f'What is a {thing}?', f'Define {thing}.',
        f'What is the opposite of {thing}?', f'Explain {thing}.', f'capital of {capital_letter(thing)}',
    ]), REFUSAL


def foreign_text(draw):
    alphabet = draw.choice([
        'áéíóúñü¿¡ aeiou', 'àâçéèêëîïôû aeiou', 'äöüß aeiou nrst', 'абвгдежзиклмнопрстуфхцчшщыьэюя ', 'αβγδεζηθικλμνξοπρστυφχψω ',
        '你好我是中国人的天气今怎么样', 'こんにちはありがとう日本', 'مرحباكيفحالك ', '😀😂👍🎉❤🔥 ',
    ])
    text = ''.join(draw.choice(alphabet) for _ in range(draw.randrange(2, 16))).strip() or 'é'
    return text + draw.choice(['', '?', '!']), FOREIGN_REFUSAL


def tool_needed(draw):
    city = draw.choice(list(CAPITALS.values()))
    return draw.choice([
        f'What is the weather in {city}?', f'What time is it in {city}?', f'Search the web for {draw.words(1, 3)}.', f'weather in {city}',
        f'How many people live in {draw.choice(list(CAPITALS))}?', f'Read the file {draw.word()}.txt', 'What time is it?',
        "What's the weather like today?",
    ]), NO_TOOL
