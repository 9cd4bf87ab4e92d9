/** Starts a network whose agents serve a text, an embedding and an image model on real engines, with funded customers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NetworkOptions } from '../../scripts/network/network.js';
import { type Customers, openCustomers } from './customers.js';
import { type DemoNetwork, startDemoNetwork } from './demo-network.js';
import { runProgram } from './program.js';
import type { Models } from './sdk-requests/sdk-request.js';

export interface AllModelsNetwork {
  readonly network: DemoNetwork;
  readonly customers: Customers;
  readonly models: Models;
  dispose(): Promise<void>;
}

/** Starts a network and waits until all three models are listed. */
export async function startAllModelsNetwork(options: Partial<NetworkOptions> = {}): Promise<AllModelsNetwork> {
  const directory = mkdtempSync(join(tmpdir(), 'embedding-model-'));
  const file = join(directory, 'tiny.gguf');
  await runProgram('scripts/make-model.ts', ['--out', file, '--embedding', '--type', 'F32', '--name', 'Tiny embedding']);
  const served = ['demo-text', 'demo-image', file].flatMap((model) => ['--model', model]);
  const { network, dispose } = await startDemoNetwork({ ...options, providerArgs: [...served, '--context', '2048'] });
  const models = await allModels(network, options.providers ?? 1);
  const customers = await openCustomers(network);
  return {
    network,
    customers,
    models,
    async dispose() {
      await customers.close();
      await dispose();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The first model of each type that every provider serves. */
async function allModels(network: DemoNetwork, providerCount: number): Promise<Models> {
  for (;;) {
    const response = await fetch(`${network.baseUrl}/v1/models`, { headers: { authorization: `Bearer ${network.apiKey}` } });
    const { data } = (await response.json()) as { data: { id: string; metadata: { model_type: string; provider_count: number } }[] };
    const [text, embedding, image] = ['text', 'embedding', 'image'].map(
      (type) => data.find(({ metadata }) => metadata.model_type === type && metadata.provider_count >= providerCount)?.id,
    );
    if (text !== undefined && embedding !== undefined && image !== undefined) return { text, embedding, image };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
