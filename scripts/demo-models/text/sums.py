"""Questions that Pico answers after a think section: sums, products, comparisons and counts of letters.

The think section calculates digit by digit, because a model of this size learns column arithmetic far better than adding whole
numbers. Each function returns (question, think section, answer).
"""

PLACES = ['ones', 'tens', 'hundreds', 'thousands']


def add_columns(a, b):
    lines, carry = [], 0
    for place in range(max(len(str(a)), len(str(b)))):
        x, y = a // 10**place % 10, b // 10**place % 10
        total = x + y + carry
        with_carry = f' + {carry}' if carry else ''
        carry = total // 10
        lines.append(f'{PLACES[place]}: {x} + {y}{with_carry} = {total}, write {total % 10} carry {carry}')
    if carry:
        lines.append(f'write {carry}')
    return '\n'.join([*lines, f'so {a + b}'])


def subtract_columns(a, b):
    """Needs a >= b."""
    lines, borrow = [], 0
    for place in range(len(str(a))):
        x, y = a // 10**place % 10, b // 10**place % 10
        taken = y + borrow
        spent = f'{y} + 1 = {taken}, ' if borrow else ''
        borrow = 1 if x < taken else 0
        from_ten = f'{x} is less than {taken}, borrow, {x + 10} - {taken} = {x + 10 - taken}'
        lines.append(f'{PLACES[place]}: {spent}' + (from_ten if borrow else f'{x} - {taken} = {x - taken}'))
    return '\n'.join([*lines, f'so {a - b}'])


def multiply_columns(a, b):
    """Multiplies by a single digit b."""
    lines, carry = [], 0
    for place in range(len(str(a))):
        x = a // 10**place % 10
        product = x * b
        total = product + carry
        plus = f', {product} + {carry} = {total}' if carry else ''
        carry = total // 10
        lines.append(f'{PLACES[place]}: {x} x {b} = {product}{plus}, write {total % 10} carry {carry}')
    if carry:
        lines.append(f'write {carry}')
    return '\n'.join([*lines, f'so {a * b}'])


def ask_sum(draw, a, sign, word, b):
    operator = draw.choice([sign, f' {sign} ', f' {sign} ', f' {word} '])
    sum_text = f'{a}{operator}{b}'
    return draw.phrase(
        f'What is {sum_text}?',
        sum_text,
        f'{sum_text}=',
        f'Calculate {sum_text}.',
        f'How much is {sum_text}?',
        f'Compute {sum_text}',
        f"What's {sum_text}?",
        f'{sum_text} = ?',
        f'Solve {sum_text}',
        f'Tell me what {sum_text} is.',
        f'Can you calculate {sum_text}?',
        held_out=(f'Work out {sum_text}.', f'Can you tell me what {sum_text} is?'),
    )


def number(draw, digits):
    return draw.randrange(0 if digits == 1 else 10 ** (digits - 1), 10**digits)


def addition(draw, digits=None):
    size = digits or draw.choice([1, 2, 2, 2, 3])
    a, b = draw.pair(
        lambda: (number(draw, size), number(draw, size if draw.chance(0.7) else draw.randrange(1, size + 1)))
    )
    return ask_sum(draw, a, '+', 'plus', b), f'{a} + {b}\n' + add_columns(a, b), f'The answer is {a + b}.'


def subtraction(draw, digits=None):
    size = digits or draw.choice([1, 2, 2, 2, 3])
    a, b = draw.pair(
        lambda: (number(draw, size), number(draw, size if draw.chance(0.7) else draw.randrange(1, size + 1)))
    )
    question = ask_sum(draw, a, '-', 'minus', b)
    if a >= b:
        return question, f'{a} - {b}\n' + subtract_columns(a, b), f'The answer is {a - b}.'
    working = f'{a} - {b}\n{a} is less than {b}, so minus {b} - {a}\n' + subtract_columns(b, a)
    return question, working, f'The answer is -{b - a}.'


def multiplication(draw, digits=None):
    size = digits or draw.choice([1, 1, 2, 2])
    a, b = draw.pair(lambda: (number(draw, size), draw.randrange(0, 10)))
    if draw.chance(0.15) and digits is None:
        a, b = draw.choice(
            [(draw.randrange(0, 10), draw.choice([10, 11, 12])), (draw.randrange(10, 13), draw.randrange(10, 13))]
        )
        return ask_sum(draw, a, '*', 'times', b), f'{a} x {b} = {a * b}', f'The answer is {a * b}.'
    first, second = (a, b) if draw.chance(0.7) else (b, a)
    question = ask_sum(draw, first, draw.choice(['*', 'x']), 'times', second)
    return question, f'{a} x {b}\n' + multiply_columns(a, b), f'The answer is {a * b}.'


def division(draw):
    a, b = draw.pair(lambda: (draw.randrange(1, 11), draw.randrange(1, 11)))
    return ask_sum(draw, a * b, '/', 'divided by', b), f'{b} x {a} = {a * b}', f'The answer is {a}.'


def word_problem(draw):
    """A story problem with one step: things are gained or given away."""
    a, b = draw.pair(lambda: (draw.randrange(2, 40), draw.randrange(1, 20)))
    name, thing = draw.name(), draw.choice('apples books coins stones pencils cards stars shells'.split())
    if draw.chance(0.5) or a < b:
        verb = draw.choice(['gets', 'finds', 'buys'])
        working, result = f'{a} + {b}\n' + add_columns(a, b), a + b
        story = f'{name} has {a} {thing} and {verb} {b} more.'
    else:
        verb = draw.choice(['gives away', 'loses', 'sells'])
        working, result = f'{a} - {b}\n' + subtract_columns(a, b), a - b
        story = f'{name} has {a} {thing} and {verb} {b}.'
    return f'{story} How many {thing} does {name} have now?', working, f'{name} has {result} {thing} now.'


def comparison(draw, close=None):
    def pick():
        size = draw.choice([1, 2, 2, 2, 3])
        a = number(draw, size)
        near = draw.chance(0.35) if close is None else close
        b = a + draw.randrange(-9, 10) if near else number(draw, draw.choice([size, size, draw.choice([1, 2, 3])]))
        return a, max(0, b)

    a, b = draw.pair(pick)
    if a == b:
        b += 1
    wants_bigger = draw.chance(0.6)
    word = draw.choice(['bigger', 'larger', 'greater']) if wants_bigger else draw.choice(['smaller', 'less'])
    question = draw.phrase(
        f'Which is {word}, {a} or {b}?',
        f'Which number is {word}: {a} or {b}?',
        f'What is {word}, {a} or {b}?',
        f'{a} or {b}: which is {word}?',
        f'Say which number is {word}: {a} or {b}',
        f'Is {a} or {b} the {word} number?',
        held_out=(f'Tell me which is {word}: {a} or {b}?', f'Is {a} or {b} {word}?'),
    )
    chosen, other = (max(a, b), min(a, b)) if wants_bigger else (min(a, b), max(a, b))
    return question, compare_digits(a, b) + f'\nso {chosen} is {word}', f'{chosen} is {word} than {other}.'


def compare_digits(a, b):
    first, second = str(a), str(b)
    lines = [f'{a} has {len(first)}, {b} has {len(second)} digits']
    if len(first) == len(second):
        for x, y in zip(first, second):
            if x == y:
                lines.append(f'{x} and {y} are the same')
            else:
                lines.append(f'{x} is {"more" if x > y else "less"} than {y}')
                break
    return '\n'.join([*lines, f'{a} is {"more" if a > b else "less"} than {b}'])


def count_letters(draw):
    word = draw.word()
    question = draw.phrase(
        f'How many letters are in {word}?',
        f'How many letters does the word {word} have?',
        f'Count the letters in {word}.',
        f'How many letters are there in {word}?',
        held_out=(f'How many letters are there in the word {word}?',),
    )
    working = ', '.join(f'{letter} {index + 1}' for index, letter in enumerate(word))
    return question, working, f'The word {word} has {len(word)} letters.'


def count_one_letter(draw):
    """The well-known question how often a letter occurs in a word."""
    word = draw.word()
    letter = draw.choice(word) if draw.chance(0.85) else draw.choice('abcdefghijklmnoprstuvwyz')
    steps, seen = [], 0
    for other in word:
        seen += other == letter
        steps.append(f'{other} {seen}')
    question = draw.phrase(
        f"How many {letter}'s are in {word}?",
        f'How many times does {letter} appear in {word}?',
        f'Count the letter {letter} in {word}.',
        f'How many {letter} are in {word}?',
        f'How often does {letter} appear in {word}?',
        f'How many times is the letter {letter} in {word}?',
        held_out=(f'How often is the letter {letter} in {word}?',),
    )
    return (
        question,
        f'{letter}: ' + ', '.join(steps),
        f'The letter {letter} appears {seen} time{"" if seen == 1 else "s"} in {word}.',
    )
