/**
 * Asks a GGUF model the held-out questions of questions.py, with greedy sampling, and counts correct answers.
 *
 *   python3 scripts/demo-models/text/questions.py > questions.jsonl
 *   npx tsx scripts/demo-models/text/evaluate.ts pico.gguf questions.jsonl [--failures 3]
 *
 * An answer is correct if the model ended the turn itself, and the text after the think section equals the expected text. Tool calls
 * are compared as JSON values.
 */
import { readFileSync } from 'node:fs';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { getLlama, type LlamaContextSequence, type LlamaModel } from 'node-llama-cpp';

interface Question {
  skill: string;
  prompt: string;
  expected: string;
}

interface Tally {
  right: number;
  asked: number;
  failures: string[];
}

const MAX_ANSWER_TOKENS = 400;
const TOOL_CALL = /^<tool_call>\n(.*)\n<\/tool_call>$/s;

interface Answer {
  text: string;
  tokens: number;
}

async function answer(model: LlamaModel, sequence: LlamaContextSequence, prompt: string): Promise<Answer> {
  await sequence.clearHistory();
  const output = [];
  for await (const token of sequence.evaluate(model.tokenize(prompt, true), { temperature: 0 })) {
    output.push(token);
    if (output.length === MAX_ANSWER_TOKENS) break;
  }
  const cut = output.length === MAX_ANSWER_TOKENS ? ' (did not stop)' : '';
  return { text: model.detokenize(output, true) + cut, tokens: output.length };
}

function isRight(text: string, expected: string): boolean {
  const visible = (text.split('</think>').at(-1) ?? '').trim();
  const call = TOOL_CALL.exec(visible)?.[1];
  const expectedCall = TOOL_CALL.exec(expected)?.[1];
  if (call === undefined || expectedCall === undefined) return visible === expected;
  try {
    return isDeepStrictEqual(JSON.parse(call), JSON.parse(expectedCall));
  } catch {
    return false; // the model's call is not JSON
  }
}

function describe(prompt: string, expected: string, given: string): string {
  const [asked, wanted, got] = [prompt.slice(-240), expected, given].map((text) => JSON.stringify(text));
  return `asked ${asked}\n    expected ${wanted}\n    answered ${got}`;
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { failures: { type: 'string', default: '0' } },
});
const [modelPath, questionsPath] = positionals;
if (!modelPath || !questionsPath) {
  process.stderr.write('usage: evaluate.ts MODEL.gguf QUESTIONS.jsonl [--failures N]\n');
  process.exit(2);
}
const lines = readFileSync(questionsPath, 'utf8').trim().split('\n');
const questions = lines.map((line) => JSON.parse(line) as Question);
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1 });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 2048, threads: 1 });
const sequence = context.getSequence();

const tallies = new Map<string, Tally>();
let tokens = 0;
const started = performance.now();
for (const { skill, prompt, expected } of questions) {
  const given = await answer(model, sequence, prompt);
  const tally = tallies.get(skill) ?? { right: 0, asked: 0, failures: [] };
  tallies.set(skill, tally);
  tokens += given.tokens;
  tally.asked++;
  if (isRight(given.text, expected)) tally.right++;
  else tally.failures.push(describe(prompt, expected, given.text));
}
const seconds = (performance.now() - started) / 1000;
await llama.dispose();

console.log('| skill | right |\n|---|---|');
for (const [skill, tally] of tallies) {
  console.log(`| ${skill} | ${tally.right} of ${tally.asked} |`);
  for (const failure of tally.failures.slice(0, Number(values.failures))) console.log(`  ${failure}`);
}
const right = [...tallies.values()].reduce((sum, tally) => sum + tally.right, 0);
console.log(`| all | ${right} of ${questions.length} (${((100 * right) / questions.length).toFixed(1)} %) |`);
console.log(`\n${(tokens / seconds).toFixed(0)} tokens a second with one thread, reading the prompts included`);
