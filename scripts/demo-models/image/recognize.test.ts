import { expect, it } from 'vitest';
import { COLOURS, recognize, type Picture } from './recognize.js';

type Inside = (x: number, y: number) => boolean;

/** An image of 128 by 96 pixels. Later figures cover earlier ones. */
function picture(background: string, figures: readonly [colour: string, inside: Inside][]): Picture {
  const [width, height] = [128, 96];
  const rgb = new Uint8Array(3 * width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = figures.findLast(([, inside]) => inside(x + 0.5, y + 0.5))?.[0] ?? background;
      rgb.set(COLOURS[colour] ?? [], 3 * (y * width + x));
    }
  }
  return { width, height, rgb };
}

const circle =
  (cx: number, cy: number, radius: number): Inside =>
  (x, y) =>
    Math.hypot(x - cx, y - cy) < radius;
const box =
  (cx: number, cy: number, half: number): Inside =>
  (x, y) =>
    Math.max(Math.abs(x - cx), Math.abs(y - cy)) < half;

it('recognizes the background and one figure with colour, shape, position and size', () => {
  const image = recognize(picture('blue', [['red', circle(64, 48, 24)]]));
  expect(image.background).toBe('blue');
  expect(image.figures).toHaveLength(1);
  expect(image.figures[0]).toMatchObject({ colour: 'red', shape: 'circle' });
  expect(image.figures[0]?.iou).toBeGreaterThan(0.95);
  expect(image.figures[0]?.x).toBeCloseTo(0.5);
  expect(image.figures[0]?.radius).toBeCloseTo(0.5);
});

it.each<[string, Inside]>([
  ['square', box(40, 60, 20)],
  ['ring', (x, y) => circle(40, 60, 24)(x, y) && !circle(40, 60, 13)(x, y)],
  ['diamond', (x, y) => Math.abs(x - 40) / 18 + Math.abs(y - 60) / 25 < 1],
  ['cross', (x, y) => box(40, 60, 24)(x, y) && Math.min(Math.abs(x - 40), Math.abs(y - 60)) < 8],
  ['triangle', (x, y) => y < 80 && y > 36 && Math.abs(x - 40) < (y - 36) / 1.7],
  ['crescent', (x, y) => circle(40, 60, 24)(x, y) && !circle(51, 60, 20)(x, y)],
])('recognizes a %s', (shape, inside) => {
  expect(recognize(picture('white', [['green', inside]])).figures).toMatchObject([{ colour: 'green', shape }]);
});

it('recognizes two figures, the larger first, and ignores a thin line', () => {
  const image = recognize(
    picture('black', [
      ['yellow', circle(100, 30, 12)],
      ['pink', box(30, 60, 20)],
      ['cyan', (x) => Math.abs(x - 70) < 1.5],
    ]),
  );
  expect(image.background).toBe('black');
  expect(image.figures).toMatchObject([
    { colour: 'pink', shape: 'square' },
    { colour: 'yellow', shape: 'circle' },
  ]);
});

it('recognizes no figure on an empty background', () => {
  expect(recognize(picture('gray', []))).toEqual({ background: 'gray', figures: [] });
});
