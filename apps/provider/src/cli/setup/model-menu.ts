/** `modelMenu`: the models that `setup` offers to the owner: those of `models recommend`, and the demo model. */
import type { ModelMemorySettings } from '../../config/model-memory.js';
import { readHostFacts } from '../../host/hardware/host-facts.js';
import { modelRepositoryOf } from '../../models/store/model-repository.js';
import type { OpenStore } from '../models-command.js';
import { clean } from '../output/terminal.js';
import { modelRow, recommendationFooter, recommendationHead, recommendationRow } from '../recommendation/recommendation-text.js';
import { recommendModels } from '../recommendation/recommendations.js';

export interface MenuItem {
  /** Value for `--model`. */
  readonly choice: string;
  /** Table row. */
  readonly text: string;
  /** False if the model must be downloaded first. */
  readonly isHere: boolean;
}

export interface ModelMenu {
  /** Best first; the demo model is the last. */
  readonly items: readonly MenuItem[];
  readonly head: readonly string[];
  /** Why recommendations may be missing, or null. */
  readonly problem: string | null;
  readonly footer: readonly string[];
}

/** Value of `--model` for the small model that ships with the program. */
export const DEMO = 'demo';

export async function modelMenu({ store }: OpenStore, coordinator: string, memorySettings: ModelMemorySettings): Promise<ModelMenu> {
  const machine = { ...(await readHostFacts()), ...memorySettings };
  const found = await recommendModels({ store, coordinator, modelRepository: modelRepositoryOf(process.env) }, machine);
  const row = (index: number, name: string): string => `${String(index + 1).padStart(2)}. ${name}`;
  const items = found.models.map((model, index): MenuItem => {
    const isHere = model.origin === 'stored';
    return { choice: model.source, text: recommendationRow(row(index, clean(model.source)), model), isHere };
  });
  const demo = { choice: DEMO, text: modelRow(row(items.length, 'demo: tiny, for trials only'), 'included', '', '', ''), isHere: true };
  return {
    items: [...items, demo],
    head: recommendationHead(found, machine),
    footer: recommendationFooter(found),
    problem: found.repositoryProblem,
  };
}
