/**
 * Draws the held-out prompts of `questions.py`, and counts how often the pixels show the requested scene. See README.md.
 *
 *   npx tsx scripts/demo-models/image/evaluate.mjs FOLDER QUESTIONS [--size WIDTHxHEIGHT] [--sheet FILE.png] [--steps N] [--guidance N]
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { recognize } from './recognize.ts';
import { draw, load } from './pipeline.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: 'string', default: '256x256' },
    sheet: { type: 'string' },
    steps: { type: 'string' },
    guidance: { type: 'string' },
  },
});
const [folder, questionsFile] = positionals;
const { sheet } = values;
const [width, height] = values.size.split('x').map(Number);
const settings = { width, height };
if (values.steps !== undefined) settings.steps = Number(values.steps);
if (values.guidance !== undefined) settings.guidance = Number(values.guidance);
const model = await load(folder);
const questions = readFileSync(questionsFile, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));
const PLACES = { left: [-1, 0], right: [1, 0], top: [0, -1], bottom: [0, 1] };

/** Compares a requested figure with a recognized figure: whether colour, shape, place and size match. */
function matchOf(asked, seen) {
  const [x, y] = (asked.place ?? 'center')
    .split(' ')
    .reduce(([a, b], word) => [a + (PLACES[word]?.[0] ?? 0), b + (PLACES[word]?.[1] ?? 0)], [0, 0]);
  const side = (value) => (value < 0.375 ? -1 : value > 0.625 ? 1 : 0);
  const middle = asked.place === null || asked.place === 'center';
  return {
    colour: seen?.colour === asked.colour,
    shape: seen?.shape === asked.shape,
    place: seen !== undefined && side(seen.x) === x && side(seen.y) === y,
    size:
      seen !== undefined &&
      (asked.size === 'small' ? seen.radius < 0.3 : asked.size === 'large' ? seen.radius > (middle ? 0.58 : 0.37) : true),
  };
}

const counts = new Map();
const count = (what, right) => {
  const [good, all] = counts.get(what) ?? [0, 0];
  counts.set(what, [good + (right ? 1 : 0), all + 1]);
};
const thumbnails = [];
const started = process.cpuUsage();
for (const [seed, { prompt, figures, ground }] of questions.entries()) {
  const picture = await draw(model, prompt, { ...settings, seed });
  const seen = recognize(picture);
  // Two recognized figures are assigned to the requested figures in the order that matches better.
  const cost = (order) =>
    order.reduce((sum, figure, index) => sum + Object.values(matchOf(figures[index], figure)).filter(Boolean).length, 0);
  const found = seen.figures.slice(0, figures.length);
  const order = found.length === 2 && cost([found[1], found[0]]) > cost(found) ? [found[1], found[0]] : found;
  const kind = figures.length === 1 ? 'one figure' : 'two figures';
  count(`${kind}: ground`, seen.background === ground);
  count(`${kind}: number of figures`, seen.figures.length === figures.length);
  let all = seen.background === ground && seen.figures.length === figures.length;
  for (const [index, asked] of figures.entries()) {
    const verdict = matchOf(asked, order[index]);
    for (const [what, right] of Object.entries(verdict)) count(`${kind}: ${what}`, right);
    count(`shape ${asked.shape}`, verdict.shape);
    all &&= Object.values(verdict).every(Boolean);
  }
  count(`${kind}: everything`, all);
  if (!all)
    console.log(
      JSON.stringify({
        index: seed,
        prompt,
        ground: seen.background,
        figures: order.map(
          ({ colour, shape, iou, x, y, radius }) =>
            `${colour} ${shape} ${iou.toFixed(2)} at ${x.toFixed(2)},${y.toFixed(2)} radius ${radius.toFixed(2)}`,
        ),
      }),
    );
  thumbnails.push(picture);
}
const { user, system } = process.cpuUsage(started);
for (const [what, [good, all]] of counts) console.log(`| ${what} | ${good} of ${all} |`);
console.log(`${((user + system) / 1e6 / questions.length).toFixed(2)} s of CPU time for each picture`);

if (sheet !== undefined) {
  const columns = Math.ceil(Math.sqrt(thumbnails.length));
  const side = 128;
  const tiles = await Promise.all(
    thumbnails.map(async ({ rgb }, index) => ({
      input: await sharp(rgb, { raw: { width, height, channels: 3 } })
        .resize(side - 4, side - 4, { fit: 'contain' })
        .png()
        .toBuffer(),
      left: (index % columns) * side,
      top: Math.floor(index / columns) * side,
    })),
  );
  const rows = Math.ceil(thumbnails.length / columns);
  await sharp({ create: { width: columns * side, height: rows * side, channels: 3, background: '#202020' } })
    .composite(tiles)
    .png()
    .toFile(sheet);
}
