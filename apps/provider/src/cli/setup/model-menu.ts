/** Models for the owner's choice: stored models, models of the coordinator's catalogue, and the demo model. */

import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { CoordinatorError, requestCoordinator } from '../../account/coordinator-http.js';
import type { ModelMemorySettings } from '../../config/model-memory.js';
import { readHostFacts } from '../../host/hardware/host-facts.js';
import { byteSizeText } from '../../models/byte-size-text.js';
import { rowOf } from '../commands/models/list.js';
import type { OpenStore } from '../models-command.js';
import { clean } from '../output/terminal.js';

export interface MenuItem {
  /** Value for `--model`. */
  readonly choice: string;
  readonly text: string;
  readonly fits: boolean;
  /** False if choosing the model downloads it. */
  readonly isHere: boolean;
}

const catalogue = Compile(
  Type.Object({
    data: Type.Array(
      Type.Object({
        id: Type.String({ maxLength: 256 }),
        display_name: Type.String({ maxLength: 256 }),
        quantization: Type.String({ maxLength: 64 }),
        min_memory_bytes: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
      }),
      { maxItems: 10_000 },
    ),
  }),
);
const CATALOGUE_MS = 10_000;
const MAX_CATALOGUED = 10;
/** Catalogue id that is also a valid model repository id. */
const REPOSITORY_REFERENCE = /^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*(?::[\w.-]+)?$/;

export const DEMO: MenuItem = {
  choice: 'demo',
  text: 'the small model that ships with this program, for trials; earns hardly anything',
  fits: true,
  isHere: true,
};

/** Fitting models first, local ones before others. Never rejects for an unreachable catalogue. */
export async function modelMenu({ store }: OpenStore, coordinator: string, memorySettings: ModelMemorySettings): Promise<MenuItem[]> {
  const host = await readHostFacts();
  const own = store.entries().map((entry): MenuItem => {
    const { id, bytes, fits, problem, estimated_tokens_per_second: speed } = rowOf(entry, store, { ...host, ...memorySettings });
    const pace = speed === null ? '' : `, about ${speed} tokens/s`;
    const text =
      problem === null ? `here, ${byteSizeText(bytes)}${pace}${fits ? '' : ', does NOT fit'}` : `here, cannot be used: ${problem}`;
    return { choice: id, text, fits, isHere: true };
  });
  const here = new Set(own.map(({ choice }) => choice));
  const known = (await catalogued(coordinator))
    .filter(({ id }) => !here.has(id) && REPOSITORY_REFERENCE.test(id))
    .map(({ id, display_name, quantization, min_memory_bytes }): MenuItem => {
      const fits = min_memory_bytes === null || host.memoryBytes <= 0 || min_memory_bytes <= host.memoryBytes;
      const needs = min_memory_bytes === null ? '' : `, for ${byteSizeText(min_memory_bytes)} of memory`;
      return { choice: `hf:${id}`, text: clean(`${display_name}, ${quantization}${needs}; requires a download`), fits, isHere: false };
    })
    .filter(({ fits }) => fits)
    .slice(0, MAX_CATALOGUED);
  return [...own.filter(({ fits }) => fits), ...known, DEMO, ...own.filter(({ fits }) => !fits)];
}

async function catalogued(coordinator: string): Promise<ReturnType<typeof catalogue.Parse>['data']> {
  try {
    const { status, value } = await requestCoordinator(coordinator, '/v1/catalogue', { ms: CATALOGUE_MS });
    return status === 200 && catalogue.Check(value) ? value.data : [];
  } catch (error) {
    if (error instanceof CoordinatorError) return [];
    throw error;
  }
}
