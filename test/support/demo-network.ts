/** `startDemoNetwork`: starts a network for one test file, with real processes and the demo model, in a temporary directory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { type Network, type NetworkOptions, startNetwork } from '../../scripts/network/network.js';

export interface DemoNetwork extends Network {
  readonly dataDir: string;
  readonly model: string;
  /** Official OpenAI client, with the network's base URL and API key. */
  readonly openai: OpenAI;
  /** Sends a request with the network's API key. */
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
}

/** Starts a network; `dispose` stops it and removes its data. */
export async function startDemoNetwork(
  options: Partial<NetworkOptions> = {},
): Promise<{ network: DemoNetwork; dispose: () => Promise<void> }> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'inference-network-'));
  const network = await startNetwork({ port: 0, providers: 1, ...options, dataDir });
  const model = network.models[0] as string;
  const openai = new OpenAI({ baseURL: `${network.baseUrl}/v1`, apiKey: network.apiKey, maxRetries: 0 });
  const post = (path: string, body: unknown, init: RequestInit = {}): Promise<Response> =>
    fetch(`${network.baseUrl}${path}`, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...init,
      headers: { authorization: `Bearer ${network.apiKey}`, 'content-type': 'application/json', ...init.headers },
    });
  return {
    network: { ...network, dataDir, model, openai, post },
    dispose: async () => {
      await network.stop();
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
