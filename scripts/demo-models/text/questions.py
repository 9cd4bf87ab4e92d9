"""Writes the evaluation: held-out questions per skill, as JSON lines {skill, prompt, expected, kind}.

Numbers, made-up words and, for skills that have them, phrasings are from the held-out split. Facts (capitals, definitions and so
on) are trained facts in new phrasings, because the model cannot know others.
"""
import argparse
import json

import copying
import corpus
import refusals
import skills
import sums
import tools
from draw import Draw

SKILLS = {
    'greetings and small talk': skills.greeting,
    'capitals': skills.capital,
    'colors': skills.color,
    'definitions': skills.definition,
    'opposites': skills.opposite,
    'animals': skills.animal,
    'days and months': skills.calendar,
    'counting': skills.counting,
    'spelling of made-up words': copying.spelling,
    'repeating made-up words': copying.repeating,
    'reversing lists of made-up words': copying.reversing,
    'questions about a given text': copying.reading,
    'answers in JSON': copying.json_answer,
    'refusing what it does not know': refusals.unknown_words,
    'refusing made-up entries': refusals.unknown_entry,
    'sums of one digit': lambda draw: sums.addition(draw, 1),
    'sums of two digits': lambda draw: sums.addition(draw, 2),
    'sums of three digits': lambda draw: sums.addition(draw, 3),
    'differences of one digit': lambda draw: sums.subtraction(draw, 1),
    'differences of two digits': lambda draw: sums.subtraction(draw, 2),
    'differences of three digits': lambda draw: sums.subtraction(draw, 3),
    'products of one digit': lambda draw: sums.multiplication(draw, 1),
    'products of two digits and one': lambda draw: sums.multiplication(draw, 2),
    'divisions': sums.division,
    'word problems': sums.word_problem,
    'comparisons': lambda draw: sums.comparison(draw, close=False),
    'comparisons of close numbers': lambda draw: sums.comparison(draw, close=True),
    'letters in made-up words': sums.count_letters,
    'one letter in made-up words': sums.count_one_letter,
}


def one_turn(skill):
    def chat(draw):
        question, *_, answer = skill(draw)
        system = draw.choice(corpus.SYSTEM_PROMPTS) if draw.chance(0.3) else ''
        return ([('system', system)] if system else []) + [('user', question), ('assistant', answer)]

    return chat


def tool_round(draw):
    offered = [tools.Tool(draw, spec) for spec in draw.sample(tools.TOOLS, draw.choice([1, 2, 3]))]
    return [('system', tools.system_text(draw, offered, '')), *draw.choice(offered).use(draw)]


def unused_tools(draw):
    offered = [tools.Tool(draw, spec) for spec in draw.sample(tools.TOOLS, draw.choice([1, 2, 3]))]
    question, *_, answer = draw.choice(
        [skills.capital, copying.spelling, lambda d: sums.addition(d, 2), skills.definition]
    )(draw)
    return [('system', tools.system_text(draw, offered, '')), ('user', question), ('assistant', answer)]


CHATS = {name: one_turn(skill) for name, skill in SKILLS.items()} | {
    'memory over turns': corpus.memory_chat,
    'name from the system prompt': corpus.instructed_chat,
    'tool calls': lambda draw: tool_round(draw)[:3],
    'answers from tool results': tool_round,
    'ordinary questions beside tools': unused_tools,
}


def question(skill, chat):
    *before, (_, expected) = chat
    visible = [
        (role, text.split('</think>')[-1].lstrip('\n') if role == 'assistant' else text) for role, text in before
    ]
    prompt = corpus.chat_text(visible) + '<|im_start|>assistant\n'
    return dict(skill=skill, prompt=prompt, expected=expected.split('</think>')[-1].strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--count', type=int, default=50, help='questions per skill')
    parser.add_argument('--seed', type=int, default=7)
    options = parser.parse_args()
    for name, chat in CHATS.items():
        draw = Draw(f'{options.seed} {name}', held_out=True)
        for _ in range(options.count):
            print(json.dumps(question(name, chat(draw))))


if __name__ == '__main__':
    main()
