/** `models recommend`: lists models that fit this machine, with estimated speed and earnings. */
import { coordinatorAddress } from '../../../account/coordinator-http.js';
import { configPath } from '../../../config/data-dir.js';
import { modelMemorySettings } from '../../../config/model-memory.js';
import { readConfig } from '../../../config/read-config.js';
import { readHostFacts } from '../../../host/hardware/host-facts.js';
import { modelRepositoryOf } from '../../../models/store/model-repository.js';
import type { Command } from '../../command.js';
import { EXIT } from '../../exit-codes.js';
import { resolveCoordinator } from '../../input/coordinator-option.js';
import { ownerOptions } from '../../input/owner-options.js';
import { modelStoreOf } from '../../models-command.js';
import { print } from '../../output/terminal.js';
import { recommendationLines } from '../../recommendation/recommendation-text.js';
import { recommendModels } from '../../recommendation/recommendations.js';

export const modelsRecommendCommand: Command = {
  name: 'models recommend',
  summary: 'Lists models that fit this machine, with estimated earnings.',
  usage: `models recommend [--coordinator URL] [--data-dir DIR] [--json]

Considers installed models, the coordinator's catalog, models in demand, and the most downloaded GGUF
models of Hugging Face (or HF_ENDPOINT). Speed and earnings are estimates.`,
  run: recommend,
};

async function recommend(args: readonly string[]): Promise<number> {
  const { dataDir, json, values } = ownerOptions(args, { coordinator: { type: 'string' } });
  const config = readConfig(configPath(dataDir));
  const coordinator =
    values.coordinator !== undefined
      ? resolveCoordinator(values.coordinator, dataDir)
      : config.coordinator === undefined
        ? null
        : coordinatorAddress(config.coordinator);
  const machine = { ...(await readHostFacts()), ...modelMemorySettings(config) };
  const found = await recommendModels(
    { store: modelStoreOf(dataDir).store, coordinator, modelRepository: modelRepositoryOf(process.env) },
    machine,
  );
  const download = found.models.find(({ origin }) => origin !== 'stored');
  const next = download === undefined ? [] : ['', `Download one: inference-provider models pull ${download.source}`];
  await print(json ? [JSON.stringify(jsonOf(found), null, 2)] : [...recommendationLines(found, machine), ...next]);
  return found.models.length === 0 ? EXIT.needsOwner : EXIT.fine;
}

function jsonOf({ models, noDemand, repositoryProblem }: Awaited<ReturnType<typeof recommendModels>>) {
  return {
    models: models.map(({ source, origin, bytes, tokensPerSecond, vision, earningsPerDay }) => ({
      source,
      origin,
      bytes,
      vision,
      estimated_tokens_per_second: tokensPerSecond === null ? null : Math.round(tokensPerSecond * 10) / 10,
      estimated_earnings_per_day_micro_usd: earningsPerDay,
    })),
    no_demand_data: noDemand,
    repository_problem: repositoryProblem,
  };
}
