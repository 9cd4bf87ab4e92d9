/** `demo.json` in the data directory: address, keys and models of a running local network. Read by tests and example programs. */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Demo {
  readonly base_url: string;
  readonly api_key: string;
  readonly admin_key: string;
  readonly text_model: string;
  readonly image_model?: string;
  readonly vision_model?: string;
}

/** Replaces the file atomically. Mode 0600, because the file contains keys. */
export function writeDemoFile<Contents extends Demo>(dataDir: string, demo: Contents): void {
  const path = join(dataDir, 'demo.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export interface RunningNetwork {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly adminKey: string;
  readonly models: readonly string[];
  readonly imageModels: readonly string[];
  readonly visionModels: readonly string[];
  readonly logDir: string;
}

/** Contents of `demo.json` for any network; a cluster adds its topology. */
export function demoOf(network: RunningNetwork): Demo {
  const [imageModel] = network.imageModels;
  const [visionModel] = network.visionModels;
  return {
    base_url: network.baseUrl,
    api_key: network.apiKey,
    admin_key: network.adminKey,
    text_model: network.models[0] as string,
    ...(imageModel === undefined ? {} : { image_model: imageModel }),
    ...(visionModel === undefined ? {} : { vision_model: visionModel }),
  };
}
