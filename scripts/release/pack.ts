/** `pack`: creates the agent's archives of one version: one for npm, and one with dependencies for each requested platform. */
import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReleasePlatform } from '@inference/protocol';
import { archive, installDependencies } from './archive.js';
import { type StageOptions, stage } from './stage.js';

interface PackOptions extends Omit<StageOptions, 'folder'> {
  readonly out: string;
  readonly platforms: readonly ReleasePlatform[];
  readonly onFile: (file: string) => void;
}

export async function pack(options: PackOptions): Promise<void> {
  const { out, version, platforms, onFile } = options;
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'release-'));
  try {
    const plain = join(out, archiveName(version, null));
    stage({ ...options, folder: join(work, 'npm') });
    await archive(join(work, 'npm'), plain);
    onFile(plain);
    for (const platform of platforms) {
      const folder = join(work, platform);
      stage({ ...options, folder });
      await installDependencies(folder, platform);
      const file = join(out, archiveName(version, platform));
      await archive(folder, file);
      onFile(file);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

export function archiveName(version: string, platform: ReleasePlatform | null): string {
  return `inference-provider-${version}${platform === null ? '' : `-${platform}`}.tgz`;
}

export async function measure(file: string): Promise<{ readonly sha256: string; readonly size: number }> {
  const hash = createHash('sha256');
  for await (const bytes of createReadStream(file)) hash.update(bytes as Buffer);
  return { sha256: hash.digest('hex'), size: statSync(file).size };
}
