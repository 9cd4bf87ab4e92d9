"""The facts Pico is taught. They are the whole of its knowledge of the world: it refuses what is not here."""

CAPITALS = dict(
    France='Paris', Germany='Berlin', Spain='Madrid', Italy='Rome', Portugal='Lisbon', Japan='Tokyo', China='Beijing',
    India='New Delhi', Canada='Ottawa', Brazil='Brasilia', Argentina='Buenos Aires', Chile='Santiago', Peru='Lima',
    Mexico='Mexico City', Egypt='Cairo', Kenya='Nairobi', Nigeria='Abuja', Greece='Athens', Turkey='Ankara',
    Russia='Moscow', Poland='Warsaw', Austria='Vienna', Hungary='Budapest', Norway='Oslo', Sweden='Stockholm',
    Denmark='Copenhagen', Finland='Helsinki', Iceland='Reykjavik', Ireland='Dublin', England='London',
    Scotland='Edinburgh', Wales='Cardiff', Belgium='Brussels', Switzerland='Bern', Australia='Canberra',
    Thailand='Bangkok', Vietnam='Hanoi', Cuba='Havana', Ukraine='Kyiv', Romania='Bucharest', Bulgaria='Sofia',
    Croatia='Zagreb', Serbia='Belgrade', Israel='Jerusalem', Iran='Tehran', Iraq='Baghdad', Morocco='Rabat',
    Ghana='Accra', Ethiopia='Addis Ababa', Indonesia='Jakarta', Netherlands='Amsterdam', Colombia='Bogota',
    Philippines='Manila', Tunisia='Tunis', Estonia='Tallinn', Latvia='Riga', Lithuania='Vilnius', Uruguay='Montevideo',
)
CAPITALS['the United States'] = 'Washington'
CAPITALS['the United Kingdom'] = 'London'
CAPITALS['South Korea'] = 'Seoul'
CAPITALS['New Zealand'] = 'Wellington'

COLORS = {
    'the sky': 'blue', 'grass': 'green', 'a banana': 'yellow', 'snow': 'white', 'coal': 'black',
    'a ripe tomato': 'red', 'an orange': 'orange', 'the sea': 'blue', 'a lemon': 'yellow', 'milk': 'white',
    'chocolate': 'brown', 'a leaf': 'green', 'blood': 'red', 'a plum': 'purple', 'a carrot': 'orange',
    'the sun': 'yellow', 'a fire truck': 'red', 'a crow': 'black', 'an elephant': 'grey', 'a flamingo': 'pink',
    'wood': 'brown', 'a cucumber': 'green', 'a polar bear': 'white', 'a strawberry': 'red', 'a frog': 'green',
}
MIXED_COLORS = {
    ('red', 'blue'): 'purple', ('red', 'yellow'): 'orange', ('blue', 'yellow'): 'green', ('red', 'white'): 'pink',
    ('black', 'white'): 'grey',
}
OPPOSITES = [
    ('hot', 'cold'), ('big', 'small'), ('up', 'down'), ('fast', 'slow'), ('happy', 'sad'), ('day', 'night'),
    ('open', 'closed'), ('light', 'dark'), ('old', 'young'), ('rich', 'poor'), ('wet', 'dry'), ('left', 'right'),
    ('early', 'late'), ('full', 'empty'), ('hard', 'soft'), ('loud', 'quiet'), ('tall', 'short'), ('near', 'far'),
    ('good', 'bad'), ('easy', 'difficult'),
]
DEFINITIONS = {
    'a computer': 'a machine that follows instructions to work with information',
    'a cat': 'a small furry animal that people often keep as a pet',
    'a dog': 'a loyal animal that people keep as a friend and helper',
    'a tree': 'a tall plant with a trunk, branches and leaves',
    'a river': 'a long stream of water that flows to the sea',
    'the moon': 'a ball of rock that goes around the Earth',
    'the sun': 'the star at the center of our solar system',
    'a star': 'a huge ball of hot gas that shines in space',
    'rain': 'water that falls from clouds in drops',
    'a book': 'a set of pages with words or pictures to read',
    'a mountain': 'a very high piece of land',
    'a token': 'a small piece of text that a language model reads or writes',
    'a language model': 'a program that predicts the next piece of text',
    'an algorithm': 'a list of steps for solving a problem',
    'a network': 'a group of computers that can talk to each other',
    'encryption': 'a way to scramble data so that only the right person can read it',
    'a signature': 'a proof that a message comes from the holder of a key',
    'a key': 'a secret value that locks or unlocks data',
    'a bird': 'an animal with wings and feathers',
    'a fish': 'an animal that lives in water and breathes with gills',
    'ice': 'water that has become solid because it is cold',
    'gravity': 'the force that pulls things toward each other',
    'a bicycle': 'a vehicle with two wheels that you move with pedals',
    'a doctor': 'a person who helps sick people get well',
    'a teacher': 'a person who helps others learn',
    'a clock': 'a device that shows the time',
    'music': 'sounds arranged so that they are nice to hear',
    'a planet': 'a large round body that goes around a star',
    'an island': 'a piece of land with water all around it',
    'an API': 'a way for one program to ask another program to do something',
    'a server': 'a computer that answers requests from other computers',
    'open source': 'software whose code anyone can read, change and share',
    'a Mac': 'a computer made by Apple',
    'a GPU': 'a chip that does many small calculations at the same time',
    'memory': 'the part of a computer that holds data while it works',
    'privacy': 'being able to keep your own things to yourself',
}
ANIMALS = {
    'dog': ('woof', 4), 'cat': ('meow', 4), 'cow': ('moo', 4), 'duck': ('quack', 2), 'sheep': ('baa', 4),
    'pig': ('oink', 4), 'lion': ('roar', 4), 'bee': ('buzz', 6), 'snake': ('hiss', 0), 'owl': ('hoot', 2),
    'horse': ('neigh', 4), 'frog': ('ribbit', 4),
}
DAYS = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()
MONTHS = 'January February March April May June July August September October November December'.split()
JOKES = [
    'Why did the computer go to the doctor? Because it had a virus!',
    'What do you call a bear with no teeth? A gummy bear!',
    'Why was the math book sad? It had too many problems!',
]
UNKNOWN_TOPICS = (
    'quantum field theory|the stock market|a history of Rome|the best phone to buy|who won the game last night|'
    'the meaning of life|how to fix my car|the latest news|a long essay about war|my homework|the theory of relativity|'
    'a recipe for lasagna|the president|tax law|black holes|how to write a compiler|my horoscope|philosophy|medicine|'
    'a legal contract|python code|a poem about robots in the style of a famous poet|chemistry|a business plan|'
    'the best movie|how engines work|how to invest money|world war two|a novel|this repository|the code base'
).split('|')
