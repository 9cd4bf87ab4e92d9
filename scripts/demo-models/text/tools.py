"""Chats in which Pico calls a tool. The names in a call come from the tool's schema, the values from the user's request.

Names of tools and arguments are random aliases or made-up words, so that the model must copy them from the prompt.
"""
import json

from draw import capital_letter
from facts import CAPITALS

PREAMBLE = (
    '# Tools\n\nYou may call one or more functions to assist with the user query.\n\n'
    'You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n'
)
CALL_FORMAT = (
    '\n</tools>\n\nFor each function call, return a json object with function name and arguments within '
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
)


class Slot:
    """One argument of a tool: possible names, JSON type, generator of values, and description."""

    def __init__(self, aliases, draw_value, about, kind='string'):
        self.aliases, self.draw_value, self.about, self.kind = aliases.split(), draw_value, about, kind


def place_name(draw):
    if not draw.held_out and draw.chance(0.5):
        return draw.choice(list(CAPITALS.values()))
    made_up = capital_letter(draw.made_up_word())
    return draw.choice(['', '', '', 'New ', 'San ', 'Port ']) + made_up


def file_path(draw):
    folders = [draw.word() for _ in range(draw.randrange(0, 3))]
    return draw.choice(['', '', '/', './']) + '/'.join(
        [*folders, f'{draw.word()}.{draw.choice(["txt", "md", "py", "ts", "json"])}']
    )


def free_text(draw):
    text = draw.words(1, 5)
    return capital_letter(text) if draw.chance(0.3) else text


CITY = Slot('city location place town', place_name, 'The name of the city')
COUNTRY = Slot(
    'country country_name nation',
    lambda d: d.choice(list(CAPITALS)) if d.chance(0.5) else capital_letter(d.made_up_word()),
    'The country',
)
QUERY = Slot('query q search_term text', lambda d: d.words(1, 4), 'What to look for')
TEXT = Slot('text message content body', free_text, 'The text')
PERSON = Slot('to name recipient person', lambda d: d.name(), 'The name of the person')
MINUTES = Slot('minutes duration time', lambda d: d.randrange(1, 100), 'The number of minutes', 'integer')
COUNT = Slot('count amount number quantity', lambda d: d.randrange(1, 1000), 'How many', 'integer')
FIRST = Slot('a x first', lambda d: d.randrange(0, 1000), 'The first number', 'number')
SECOND = Slot('b y second', lambda d: d.randrange(0, 1000), 'The second number', 'number')
PATH = Slot('path file file_path filename', file_path, 'The path of the file')
COMMAND = Slot(
    'command cmd', lambda d: f'{d.choice(["ls", "cat", "echo", "npm test", "git log", "rm"])} {d.word()}', 'The command'
)
LANGUAGE = Slot(
    'language target_language lang',
    lambda d: d.choice('French German Spanish Italian Japanese Dutch'.split()),
    'The language',
)
ROOM = Slot('room area', lambda d: d.choice(['kitchen', 'bedroom', 'garage', 'hall', d.made_up_word()]), 'The room')
IDENTIFIER = Slot('id user_id key', lambda d: d.made_up_word() + str(d.randrange(100)), 'The identifier')
FROM = Slot('from origin start', place_name, 'Where it starts')
TO = Slot('to destination end', place_name, 'Where it ends')

# aliases | description | slots | requests, with {0}, {1} for the slots' values | tool result | answer
TOOLS = [
    (
        'get_weather weather getWeather current_weather',
        'Get the weather for a city',
        [CITY],
        [
            'What is the weather in {0}?',
            "How's the weather in {0} today?",
            'weather in {0}',
            'Is it raining in {0}?',
            "What's the weather like in {0}?",
        ],
        lambda d: dict(
            temperature=d.randrange(-9, 40), condition=d.choice(['sunny', 'rainy', 'cloudy', 'windy', 'snowy'])
        ),
        'It is {temperature} degrees and {condition} in {0}.',
    ),
    (
        'get_time current_time getTime',
        'Get the current time in a city',
        [CITY],
        ['What time is it in {0}?', 'Tell me the time in {0}.'],
        lambda d: dict(time=f'{d.randrange(24):02d}:{d.randrange(60):02d}'),
        'It is {time} in {0}.',
    ),
    (
        'search web_search search_web',
        'Search the web',
        [QUERY],
        ['Search the web for {0}.', 'Look up {0}', 'Search for {0}', 'Find {0} on the web.'],
        lambda d: dict(result=d.words(1, 4)),
        'I searched for {0} and found: {result}',
    ),
    (
        'get_population population',
        'Get the population of a country',
        [COUNTRY],
        ['How many people live in {0}?', 'What is the population of {0}?'],
        lambda d: dict(population=f'{d.randrange(1, 999)} million'),
        '{population} people live in {0}.',
    ),
    (
        'send_message sendMessage message',
        'Send a message to a person',
        [PERSON, TEXT],
        ['Send {0} the message: {1}', 'Tell {0}: {1}', 'Send a message to {0} saying {1}', 'Message {0}: "{1}"'],
        lambda d: dict(status=d.choice(['sent', 'ok', 'delivered'])),
        'I sent the message to {0}.',
    ),
    (
        'set_timer start_timer timer',
        'Start a timer',
        [MINUTES],
        ['Set a timer for {0} minutes.', 'Start a {0} minute timer', 'Timer for {0} minutes'],
        lambda d: dict(status='started'),
        'The timer is set for {0} minutes.',
    ),
    (
        'add add_numbers sum',
        'Add two numbers',
        [FIRST, SECOND],
        ['Add {0} and {1} with the tool.', 'Use the tool to add {0} and {1}.', 'Add {0} and {1}.'],
        lambda d: dict(result=d.randrange(0, 2000)),
        'The result is {result}.',
    ),
    (
        'multiply multiply_numbers product',
        'Multiply two numbers',
        [FIRST, SECOND],
        ['Multiply {0} by {1}.', 'Use the tool to multiply {0} and {1}.'],
        lambda d: dict(result=d.randrange(0, 99999)),
        'The result is {result}.',
    ),
    (
        'read_file readFile open_file',
        'Read a file',
        [PATH],
        ['Read the file {0}', 'Open {0}', 'What is in {0}?', 'Show me {0}'],
        lambda d: dict(content=d.words(1, 5)),
        'The file says: {content}',
    ),
    (
        'run_command bash shell exec',
        'Run a command',
        [COMMAND],
        ['Run {0}', 'Run the command {0}', 'Execute: {0}'],
        lambda d: dict(output=d.words(1, 4)),
        'The command printed: {output}',
    ),
    (
        'translate translate_text',
        'Translate text to a language',
        [TEXT, LANGUAGE],
        ['Translate "{0}" to {1}.', 'Translate to {1}: {0}'],
        lambda d: dict(translation=d.words(1, 4)),
        'In {1} that is: {translation}',
    ),
    (
        'add_note create_note note',
        'Save a note',
        [TEXT],
        ['Make a note: {0}', 'Save a note saying {0}', 'Note: {0}'],
        lambda d: dict(status='saved'),
        'I saved the note.',
    ),
    (
        'light_on turn_on_light',
        'Turn on the light in a room',
        [ROOM],
        ['Turn on the light in the {0}.', 'Light on in the {0}'],
        lambda d: dict(status='on'),
        'The light in the {0} is on.',
    ),
    (
        'get_user find_user lookup',
        'Get a user by id',
        [IDENTIFIER],
        ['Get the user {0}', 'Find user {0}', 'Who is user {0}?'],
        lambda d: dict(name=d.name(), age=d.randrange(1, 99)),
        'The user is {name}, {age} years old.',
    ),
    (
        'book_train find_train route',
        'Find a train from one city to another',
        [FROM, TO],
        ['Find a train from {0} to {1}.', 'I need a train from {0} to {1}', 'Book a train from {0} to {1}.'],
        lambda d: dict(departure=f'{d.randrange(24):02d}:{d.randrange(60):02d}'),
        'The train from {0} to {1} leaves at {departure}.',
    ),
    (
        'order order_items buy',
        'Order a number of things',
        [COUNT, QUERY],
        ['Order {0} {1}', 'Buy {0} {1}.'],
        lambda d: dict(status='ordered'),
        'I ordered {0} {1}.',
    ),
]


class Tool:
    """A tool as one chat defines it, with chosen names."""

    def __init__(self, draw, spec):
        aliases, self.description, self.slots, self.requests, self.draw_result, self.reply = spec
        self.name = draw.choice(aliases.split())
        self.is_described = draw.chance(0.9)
        if self.is_described and draw.chance(0.25):  # a name unique to this chat
            self.name = draw.made_up_word() + draw.choice(['_', '']) + draw.word()
        self.arguments = []
        for slot in self.slots:
            name = draw.made_up_word() if draw.chance(0.1) else draw.choice(slot.aliases)
            self.arguments.append(name if name not in self.arguments else f'{name}2')

    def schema(self, draw):
        properties = {}
        for name, slot in zip(self.arguments, self.slots):
            properties[name] = dict(type=slot.kind)
            if draw.chance(0.35):
                properties[name]['description'] = slot.about
        parameters = dict(type='object', properties=properties)
        if draw.chance(0.7):
            parameters['required'] = list(self.arguments)
        if draw.chance(0.1):
            parameters['additionalProperties'] = False
        described = dict(description=self.description) if self.is_described else {}
        return dict(type='function', function=dict(name=self.name, **described, parameters=parameters))

    def use(self, draw):
        """One request, its call, the tool's result and the answer to it, as messages."""
        values = [slot.draw_value(draw) for slot in self.slots]
        request = draw.choice(self.requests).format(*values)
        if draw.chance(0.1):
            request = request[0].lower() + request[1:]
        arguments = dict(zip(self.arguments, values))
        indent = '\t' if draw.chance(0.12) and not draw.held_out else None  # the format that some engines' grammars force
        written = json.dumps(arguments, indent=indent)
        call = f'<tool_call>\n{{"name": "{self.name}", "arguments": {written}}}\n</tool_call>'
        result, answer = self.outcome(draw, values)
        return [
            ('user', request),
            ('assistant', call),
            ('tool', f'<tool_response>\n{result}\n</tool_response>'),
            ('assistant', answer),
        ]

    def outcome(self, draw, values):
        shape = draw.random()
        if shape < 0.12:
            words = draw.words(1, 4)
            return draw.choice([words, json.dumps(dict(result=words))]), f'The result is: {words}'
        if shape < 0.2:
            words = draw.choice(['not found', 'timeout', 'no access', draw.words(1, 3)])
            return draw.choice([json.dumps(dict(error=words)), f'Error: {words}']), f'The tool failed: {words}'
        result = self.draw_result(draw)
        text = json.dumps(result, separators=(',', ':')) if draw.chance(0.4) else json.dumps(result)
        return text, self.reply.format(*values, **result)


def system_text(draw, tools, system):
    separators = (',', ':') if draw.chance(0.2) else None
    listed = '\n'.join(json.dumps(tool.schema(draw), separators=separators) for tool in tools)
    return (system + '\n\n' if system else '') + PREAMBLE + listed + CALL_FORMAT


def tool_chat(draw, question, system):
    """`question(draw)` returns a (user, assistant) turn without a tool. `system`: a system prompt, or ''."""
    tools = [Tool(draw, spec) for spec in draw.sample(TOOLS, draw.choice([1, 1, 2, 2, 3, 4]))]
    messages = [('system', system_text(draw, tools, system))]
    for _ in range(draw.choice([1, 2, 2, 3])):
        if draw.chance(0.12):
            user, assistant = question(draw)
            messages += [('user', user), ('assistant', assistant)]
        else:
            messages += draw.choice(tools).use(draw)
    return messages
