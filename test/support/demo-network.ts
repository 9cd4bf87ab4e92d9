/** A running network in its own directory, for one test file: real processes, real sockets, the real demo model. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { type Network, type NetworkOptions, startNetwork } from '../../scripts/network/network.js';

export interface DemoNetwork extends Network {
  readonly dataDir: string;
  readonly model: string;
  /** The official client with only the base address and key changed. */
  readonly openai: OpenAI;
  /** A plain request with the network's key. */
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
