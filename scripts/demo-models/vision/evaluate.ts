/**
 * Asks the demo vision model through the agent's engine, with greedy sampling, and counts correct answers. See README.md.
 *
 *   npx tsx scripts/demo-models/vision/evaluate.ts FOLDER QUESTIONS-FOLDER [--failures 2]
 *   npx tsx scripts/demo-models/vision/evaluate.ts FOLDER --drawn-from PROMPTS.jsonl [--failures 2]
 *
 * The first form asks about the images of questions.py. In the second, the demo image model draws prompts of ../image/questions.py,
 * which the vision model's descriptions must match.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { Engine } from '../../../apps/provider/src/engine/engine.js';
import type { PromptMessage, PromptPart } from '../../../apps/provider/src/engine/messages.js';
import { draw, load } from '../image/pipeline.mjs';

type Part = { text: string } | { image: string };

interface Question {
  skill: string;
  messages: { role: 'system' | 'user' | 'assistant'; content: Part[] }[];
  expected: string;
}

/** Prompt for the image model, with the figures that it names. */
interface Request {
  prompt: string;
  figures: { shape: string | null; colour: string | null }[];
  ground: string | null;
}

const PICTO = fileURLToPath(new URL('../../../apps/provider/demo-models/picto', import.meta.url));
const MAX_TOKENS = 120;
const SAMPLING = {
  temperature: 0,
  topP: null,
  topK: null,
  minP: null,
  logitBias: [],
  seed: null,
  frequencyPenalty: 0,
  presencePenalty: 0,
} as const;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { failures: { type: 'string', default: '0' }, 'drawn-from': { type: 'string' } },
});
const [folder, questionsFolder] = positionals;
const tallies = new Map<string, { right: number; asked: number; failures: string[] }>();

function count(what: string, isRight: boolean, failure: string): void {
  const tally = tallies.get(what) ?? { right: 0, asked: 0, failures: [] };
  tallies.set(what, tally);
  tally.asked++;
  if (isRight) tally.right++;
  else tally.failures.push(failure);
}

async function answer(engine: Engine, messages: readonly PromptMessage[]): Promise<string> {
  const generation = engine.generate({
    prompt: { type: 'chat', messages, tools: [], continuesLast: false, thinking: null, skipsThinking: false },
    maxTokens: MAX_TOKENS,
    grammar: null,
    logprobs: null,
    cacheScope: null,
    sampling: SAMPLING,
  });
  let text = '';
  for await (const batch of generation) for (const piece of batch) text += piece.text;
  return text;
}

async function askQuestions(engine: Engine, questions: string): Promise<void> {
  const part = (given: Part): PromptPart =>
    'text' in given ? { type: 'text', text: given.text } : { type: 'image', data: readFileSync(join(questions, given.image)), field: given.image };
  for (const line of readFileSync(join(questions, 'questions.jsonl'), 'utf8').trim().split('\n')) {
    const { skill, messages, expected } = JSON.parse(line) as Question;
    const prompt = messages.map(({ role, content }): PromptMessage => {
      if (role === 'user') return { role, content: content.map(part) };
      return { role, content: content.map((each) => ('text' in each ? each.text : '')).join('') };
    });
    const given = await answer(engine, prompt);
    count(skill, given === expected, `${JSON.stringify(messages.at(-1)?.content)}: expected ${expected}, answered ${given}`);
  }
}

const NUMBERS = new Map([
  ["two", 2],
  ["three", 3],
  ["four", 4],
]);
const FIGURE = /\b(an?|two|three|four) (\w+) (circle|square|triangle|star|heart|ring|cross|diamond|crescent|arrow)(?:e?s)?\b/g;

/** Figures in an answer, sorted, one entry per figure, such as `blue star`. */
function figuresOf(description: string): string[] {
  return [...description.toLowerCase().matchAll(FIGURE)]
    .flatMap(([, many = '', colour, shape]) => new Array<string>(NUMBERS.get(many) ?? 1).fill(`${colour} ${shape}`))
    .sort();
}

async function describeDrawings(engine: Engine, prompts: string): Promise<void> {
  const picto = await load(PICTO);
  for (const [seed, line] of readFileSync(prompts, 'utf8').trim().split('\n').entries()) {
    const { prompt, figures, ground } = JSON.parse(line) as Request;
    if (ground === null || figures.some(({ shape, colour }) => shape === null || colour === null)) continue;
    const { rgb, width, height } = await draw(picto, prompt, { seed });
    const data = await sharp(rgb, { raw: { width, height, channels: 3 } })
      .png()
      .toBuffer();
    const content: PromptPart[] = [
      { type: 'image', data, field: 'picture' },
      { type: 'text', text: '\nWhat is on it?' },
    ];
    const given = await answer(engine, [{ role: 'user', content }]);
    const [asked, seen] = [figures.map(({ shape, colour }) => `${colour} ${shape}`).sort(), figuresOf(given)];
    const failure = `${seed} ${prompt}: answered ${given}`;
    const list = (all: string[], part: 0 | 1): string => all.map((figure) => figure.split(' ')[part]).sort().join();
    const kind = figures.length === 1 ? 'one figure' : 'two figures';
    const isGround = given.endsWith(` on a ${ground} ground.`) || given.endsWith(` on an ${ground} ground.`);
    count(`${kind}: ground`, isGround, failure);
    count(`${kind}: number of figures`, seen.length === asked.length, failure);
    count(`${kind}: colours`, list(seen, 0) === list(asked, 0), failure);
    count(`${kind}: shapes`, list(seen, 1) === list(asked, 1), failure);
    count(`${kind}: everything`, isGround && seen.join() === asked.join(), failure);
  }
}

if (folder === undefined || (questionsFolder === undefined) === (values['drawn-from'] === undefined)) {
  process.stderr.write('usage: evaluate.ts FOLDER QUESTIONS-FOLDER | FOLDER --drawn-from PROMPTS.jsonl\n');
  process.exit(2);
}
const engine = await Engine.start({
  settings: {
    type: 'vision',
    modelPath: join(folder, 'viso.gguf'),
    projectorPath: join(folder, 'mmproj-viso.gguf'),
    slots: 1,
    contextSize: 1024,
    gpu: 'none',
  },
});
try {
  if (values['drawn-from'] === undefined) await askQuestions(engine, questionsFolder ?? '');
  else await describeDrawings(engine, values['drawn-from']);
} finally {
  await engine.close();
}
for (const [what, { right, asked, failures }] of tallies) {
  console.log(`| ${what} | ${right} of ${asked} |`);
  for (const failure of failures.slice(0, Number(values.failures))) console.log(`    ${failure}`);
}
