/** The shipped demo vision model describes pictures that it was not trained on, painted here in shapes and sizes of their own. */
import { readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import sharp, { type Sharp } from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Engine } from '../../src/engine/engine.js';
import type { PromptMessage, PromptPart } from '../../src/engine/messages.js';
import { ask, collect, conversation } from '../demo-model.js';

const MAX_BYTES = 8_000_000;
const IMAGE_TOKENS = 64;
const STAR = '0,-80 19,-26 76,-25 31,10 47,65 0,33 -47,65 -31,10 -76,-25 -19,-26';
const HEART = 'M0 60 C-70 5 -60 -55 -28 -55 C-12 -55 0 -42 0 -28 C0 -42 12 -55 28 -55 C60 -55 70 5 0 60';
const modelPath = createRequire(import.meta.url).resolve('#demo-vision-model');
const folder = dirname(modelPath);
let engine: Engine;

beforeAll(async () => {
  const projectorPath = join(folder, 'mmproj-viso.gguf');
  engine = await Engine.start({ settings: { type: 'vision', modelPath, projectorPath, slots: 1, contextSize: 512, gpu: 'none' } });
});
afterAll(() => engine?.close());

/** An SVG of this ground and these figures, as a bitmap. */
function paint(width: number, height: number, ground: string, figures: string): Sharp {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="${ground}"/>${figures}</svg>`;
  return sharp(Buffer.from(svg));
}

const circle = paint(300, 300, 'white', '<circle cx="150" cy="150" r="80" fill="red"/>').png();
const triangle = (x: number): string => `<polygon points="${x},60 ${x + 90},220 ${x - 90},220" fill="orange"/>`;
const triangles = paint(480, 300, 'rgb(128,42,170)', triangle(120) + triangle(350)).png();
const star = `<polygon points="${STAR}" transform="translate(150 180)" fill="rgb(250,222,45)"/>`;
const heart = `<path d="${HEART}" transform="translate(470 180) scale(1.4)" fill="green"/>`;
const starAndHeart = paint(640, 360, 'black', star + heart).jpeg({ quality: 60 });

/** Answers to questions of one chat; the picture comes with the first. */
async function answers(picture: Sharp | null, ...questions: string[]): Promise<string[]> {
  const messages: PromptMessage[] = [];
  const told: string[] = [];
  for (const question of questions) {
    const isFirst = messages.length === 0 && picture !== null;
    const image: PromptPart[] = isFirst ? [{ type: 'image', data: await picture.toBuffer(), field: 'messages[0].content[0]' }] : [];
    messages.push({ role: 'user', content: [...image, { type: 'text', text: question }] });
    const { text } = await collect(engine.generate({ ...ask(''), prompt: conversation(messages) }));
    messages.push({ role: 'assistant', content: text });
    told.push(text);
  }
  return told;
}

test('is small and complete', () => {
  const files = readdirSync(folder);
  expect(files.toSorted()).toEqual(['LICENSE', 'MODEL_CARD.md', 'chat_template.jinja', 'mmproj-viso.gguf', 'viso.gguf']);
  expect(files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)).toBeLessThanOrEqual(MAX_BYTES);
  expect(engine.facts).toMatchObject({ contextSize: 512, vision: { maxImageTokens: IMAGE_TOKENS } });
});

test.each([
  ['a PNG', circle, 'A red circle on a white ground.'],
  ['a wide picture', triangles, 'Two orange triangles on a purple ground.'],
  ['a JPEG', starAndHeart, 'A yellow star and a green heart on a black ground.'],
])('describes %s', async (_name, picture, expected) => {
  expect(await answers(picture, 'What is on it?')).toEqual([expected]);
});

test('answers questions about a picture, over several turns', async () => {
  const asked = [
    'How many shapes are there?',
    'What colour is the background?',
    'Is there a circle?',
    'Where is the heart?',
    'Describe the picture as JSON.',
  ];
  const told = await answers(starAndHeart, ...asked);
  expect(told.slice(0, -1)).toEqual([
    'There are two shapes.',
    'The ground is black.',
    'No, there is no circle.',
    'The heart is on the right.',
  ]);
  expect(JSON.parse(told.at(-1) ?? '')).toEqual({
    ground: 'black',
    shapes: [
      { count: 1, colour: 'yellow', shape: 'star' },
      { count: 1, colour: 'green', shape: 'heart' },
    ],
  });
});

test('is not confused by a long system message', async () => {
  const system: PromptMessage = { role: 'system', content: 'Follow these instructions. '.repeat(200) };
  const image: PromptPart = { type: 'image', data: await triangles.toBuffer(), field: 'messages[1].content[0]' };
  const messages: PromptMessage[] = [system, { role: 'user', content: [image, { type: 'text', text: 'What do you see?' }] }];
  const { text } = await collect(engine.generate({ ...ask(''), prompt: conversation(messages) }));
  expect(text).toBe('Two orange triangles on a purple ground.');
});

test('says so where there is no picture, and where it shows no shapes', async () => {
  expect(await answers(null, 'What is on the picture?')).toEqual([
    'There is no picture in this chat. Send me one, and I will say what is on it.',
  ]);
  const lines = Array.from({ length: 16 }, (_, row) => `<rect x="20" y="${20 + 22 * row}" width="${200 + 31 * (row % 5)}" height="9"/>`);
  expect(await answers(paint(400, 400, 'white', lines.join('')).png(), 'What does this show?')).toEqual([
    'I cannot make out any coloured shapes in this picture.',
  ]);
});
