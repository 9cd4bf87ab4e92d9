/**
 * Recognizes the content of a demo image, for evaluations: background colour, and each figure's colour, shape, position and size.
 *
 * A figure is a group of connected pixels of one colour. Its shape is the template with the highest intersection over union.
 */
import { readFileSync } from 'node:fs';

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of each pixel, row by row. */
  readonly rgb: Uint8Array;
}

interface RecognizedFigure {
  readonly colour: string;
  readonly shape: string;
  /** Intersection over union of figure and template, 0 to 1. */
  readonly iou: number;
  /** Centre of the bounding box, from 0 to 1 of the picture's width and height. */
  readonly x: number;
  readonly y: number;
  /** Longer side of the bounding box, relative to the picture's shorter side. */
  readonly radius: number;
}

export interface RecognizedImage {
  readonly background: string;
  /** Largest first. */
  readonly figures: readonly RecognizedFigure[];
}

export const COLOURS: Readonly<Record<string, readonly [number, number, number]>> = {
  red: [222, 30, 36],
  orange: [247, 140, 20],
  yellow: [250, 222, 45],
  green: [32, 152, 62],
  blue: [32, 72, 214],
  purple: [128, 42, 170],
  pink: [246, 132, 184],
  brown: [120, 72, 32],
  black: [16, 16, 18],
  white: [250, 250, 250],
  gray: [130, 130, 132],
  cyan: [40, 200, 222],
};
const NAMES = Object.keys(COLOURS);
/** Mask of each shape, stretched to a square: rows of `#` and `.`. Written by templates.py. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = JSON.parse(readFileSync(new URL('./templates.json', import.meta.url), 'utf8'));
const TEMPLATE_SIDE = 24;
/** Minimum thickness of a figure, relative to the picture's shorter side. Thinner areas are edges with mixed colours. */
const MIN_THICKNESS = 1 / 32;

export function recognize(picture: Picture): RecognizedImage {
  const labels = labelPixels(picture);
  const background = backgroundOf(labels, picture);
  const figures = connectedGroups(labels, background, picture).filter((pixels) => isThick(pixels, labels, picture));
  return {
    background: NAMES[background] as string,
    figures: figures.toSorted((a, b) => b.length - a.length).map((pixels) => describe(pixels, labels, picture)),
  };
}

function labelPixels({ rgb }: Picture): Uint8Array {
  const labels = new Uint8Array(rgb.length / 3);
  const at = (index: number): number => rgb[index] as number;
  for (let pixel = 0; pixel < labels.length; pixel++) {
    let nearest = Number.POSITIVE_INFINITY;
    for (const [index, name] of NAMES.entries()) {
      const [red, green, blue] = COLOURS[name] as readonly [number, number, number];
      const distance = (at(3 * pixel) - red) ** 2 + (at(3 * pixel + 1) - green) ** 2 + (at(3 * pixel + 2) - blue) ** 2;
      if (distance >= nearest) continue;
      nearest = distance;
      labels[pixel] = index;
    }
  }
  return labels;
}

/** Index of the most frequent colour along the picture's edge: the background. */
function backgroundOf(labels: Uint8Array, { width, height }: Picture): number {
  const counts = new Array<number>(NAMES.length).fill(0);
  const count = (pixel: number): void => {
    const label = labels[pixel] as number;
    counts[label] = (counts[label] as number) + 1;
  };
  for (let x = 0; x < width; x++) [x, (height - 1) * width + x].forEach(count);
  for (let y = 0; y < height; y++) [y * width, y * width + width - 1].forEach(count);
  return counts.indexOf(Math.max(...counts));
}

function connectedGroups(labels: Uint8Array, background: number, { width }: Picture): number[][] {
  const visited = new Uint8Array(labels.length);
  const groups: number[][] = [];
  for (let start = 0; start < labels.length; start++) {
    if (visited[start] === 1 || labels[start] === background) continue;
    visited[start] = 1;
    const group = [start];
    for (let next = 0; next < group.length; next++) {
      const pixel = group[next] as number;
      const x = pixel % width;
      for (const neighbour of [x > 0 ? pixel - 1 : -1, x < width - 1 ? pixel + 1 : -1, pixel - width, pixel + width]) {
        if (neighbour < 0 || neighbour >= labels.length || visited[neighbour] === 1 || labels[neighbour] !== labels[start]) continue;
        visited[neighbour] = 1;
        group.push(neighbour);
      }
    }
    groups.push(group);
  }
  return groups;
}

function isThick(pixels: readonly number[], labels: Uint8Array, { width, height }: Picture): boolean {
  const reach = Math.round((MIN_THICKNESS * Math.min(width, height)) / 2);
  return pixels.some((pixel) => {
    for (let dy = -reach; dy <= reach; dy++) {
      for (let dx = -reach; dx <= reach; dx++) {
        if (labels[pixel + dy * width + dx] !== labels[pixel]) return false;
      }
    }
    return true;
  });
}

function describe(pixels: readonly number[], labels: Uint8Array, { width, height }: Picture): RecognizedFigure {
  const columns = pixels.map((pixel) => pixel % width);
  const rows = pixels.map((pixel) => Math.floor(pixel / width));
  const [left, right, top, bottom] = [min(columns), max(columns) + 1, min(rows), max(rows) + 1];
  const inside = new Set(pixels);
  const mask = Array.from({ length: TEMPLATE_SIDE ** 2 }, (_, index) => {
    const x = Math.floor(left + (((index % TEMPLATE_SIDE) + 0.5) * (right - left)) / TEMPLATE_SIDE);
    const y = Math.floor(top + ((Math.floor(index / TEMPLATE_SIDE) + 0.5) * (bottom - top)) / TEMPLATE_SIDE);
    return inside.has(y * width + x);
  });
  const scores = Object.entries(TEMPLATES).map(([shape, template]) => ({ shape, iou: iouOf(mask, template.join('')) }));
  const best = scores.reduce((a, b) => (b.iou > a.iou ? b : a));
  return {
    colour: NAMES[labels[pixels[0] as number] as number] as string,
    ...best,
    x: (left + right) / 2 / width,
    y: (top + bottom) / 2 / height,
    radius: Math.max(right - left, bottom - top) / Math.min(width, height),
  };
}

function iouOf(mask: readonly boolean[], template: string): number {
  let intersection = 0;
  let union = 0;
  for (const [index, filled] of mask.entries()) {
    const expected = template[index] === '#';
    if (filled && expected) intersection++;
    if (filled || expected) union++;
  }
  return intersection / union;
}

function min(values: readonly number[]): number {
  return values.reduce((a, b) => Math.min(a, b));
}

function max(values: readonly number[]): number {
  return values.reduce((a, b) => Math.max(a, b));
}
