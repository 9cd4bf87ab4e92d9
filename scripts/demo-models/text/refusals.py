"""Questions that Pico cannot answer, with refusals. Each function returns (question, answer)."""

from draw import capital_letter
from facts import CAPITALS, UNKNOWN_TOPICS

REFUSAL = (
    "I'm only a tiny demo model, so I don't know about that. "
    'Try asking me for a capital, a color, a small sum or a joke.'
)
FOREIGN_REFUSAL = (
    "I'm only a tiny demo model and I understand a little English. Please ask me something simple in English."
)
NO_TOOL = 'I cannot look that up, because I have no tool for it.'


def unknown_topic(draw):
    topic = draw.choice(UNKNOWN_TOPICS)
    return (
        draw.choice(
            [
                f'Explain {topic}.',
                f'Tell me about {topic}',
                f'Write {topic}',
                f'What do you think about {topic}?',
                f'Can you help me with {topic}?',
                f'Give me {topic}',
                f'I want to know {topic}',
            ]
        ),
        REFUSAL,
    )


def unknown_words(draw):
    """A question made of random words."""
    first = lambda: draw.choice(['Why', 'How', 'When', 'Where', 'Who', 'Should'])
    verb = lambda: draw.choice(['is', 'do', 'does', 'can', 'did', 'will', 'are', 'was'])
    someone = lambda: draw.choice(['the', 'a', 'my', 'I', 'you', 'we', 'it'])
    request = lambda: draw.choice(
        [
            'how to',
            'how do i',
            'why does',
            'explain how',
            'write a poem about',
            'translate',
            'summarize',
            'can you',
            'give me a recipe for',
            'what happened in',
            'fix',
            'write a function that',
            'please',
        ]
    )
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
    """A known kind of question about a made-up thing, which must be refused."""
    thing = draw.made_up_word()
    return (
        draw.choice(
            [
                f'What is the capital of {capital_letter(thing)}?',
                f'What color is a {thing}?',
                f'What is a {thing}?',
                f'Define {thing}.',
                f'What is the opposite of {thing}?',
                f'Explain {thing}.',
                f'capital of {capital_letter(thing)}',
            ]
        ),
        REFUSAL,
    )


def foreign_text(draw):
    alphabet = draw.choice(
        [
            'áéíóúñü¿¡ aeiou',
            'àâçéèêëîïôû aeiou',
            'äöüß aeiou nrst',
            'абвгдежзиклмнопрстуфхцчшщыьэюя ',
            'αβγδεζηθικλμνξοπρστυφχψω ',
            '你好我是中国人的天气今怎么样',
            'こんにちはありがとう日本',
            'مرحباكيفحالك ',
            '😀😂👍🎉❤🔥 ',
        ]
    )
    text = ''.join(draw.choice(alphabet) for _ in range(draw.randrange(2, 16))).strip() or 'é'
    return text + draw.choice(['', '?', '!']), FOREIGN_REFUSAL


def tool_needed(draw):
    city = draw.choice(list(CAPITALS.values()))
    return (
        draw.choice(
            [
                f'What is the weather in {city}?',
                f'What time is it in {city}?',
                f'Search the web for {draw.words(1, 3)}.',
                f'weather in {city}',
                f'How many people live in {draw.choice(list(CAPITALS))}?',
                f'Read the file {draw.word()}.txt',
                'What time is it?',
                "What's the weather like today?",
            ]
        ),
        NO_TOOL,
    )
