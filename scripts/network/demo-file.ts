/** `demo.json`: addresses and keys of a network on this machine, for programs that use the network. */
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

/** Replaces the file at once. Readable by the owner only, because of the keys. */
export function writeDemoFile<Contents extends Demo>(dataDir: string, demo: Contents): void {
  const path = join(dataDir, 'demo.json');
  writeFileSync(`${path}.new`, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Facts of a network for its users. */
export interface RunningNetwork {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly adminKey: string;
  readonly models: readonly string[];
  readonly imageModels: readonly string[];
  readonly visionModels: readonly string[];
  readonly logDir: string;
}

/** Members of `demo.json` that every network has. */
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
