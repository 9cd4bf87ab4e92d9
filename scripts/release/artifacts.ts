/** `makeArtifacts`: writes all files of a release: packages, bills of materials and `SHA256SUMS`. Equal sources give equal bytes. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ReleasePlatform } from '@inference/protocol';
import { packClient } from '../client-package.js';
import { archive } from './archive.js';
import { ROOT } from './manifest.js';
import { measure, pack } from './pack.js';
import { sbomOf } from './sbom.js';
import { COORDINATOR_PACKAGE, stageCoordinator } from './stage-coordinator.js';

export interface ArtifactOptions {
  readonly out: string;
  readonly version: string;
  /** Base64 of the Ed25519 keys whose releases the agent accepts. */
  readonly releaseKeys: readonly string[];
  /** Platforms whose archives of the agent include the dependencies. */
  readonly platforms: readonly ReleasePlatform[];
  /** Web address of the repository, such as `https://github.com/OWNER/NAME`. */
  readonly repository?: string | undefined;
  readonly onFile?: (file: string) => void;
}

const SUMS = 'SHA256SUMS';
const PROGRAMS = [
  { workspace: 'apps/provider', name: 'inference-provider', file: 'inference-provider' },
  { workspace: 'apps/coordinator', name: COORDINATOR_PACKAGE, file: COORDINATOR_PACKAGE },
  { workspace: 'packages/client', name: '@inference/client', file: 'inference-client' },
] as const;

/** Writes files `inference-NAME-VERSION…` and `SHA256SUMS` into the folder `out`, which must be empty or missing. */
export async function makeArtifacts(options: ArtifactOptions): Promise<void> {
  const { out, version, repository, onFile = () => {} } = options;
  mkdirSync(out, { recursive: true });
  if (readdirSync(out).length > 0) throw new Error(`${out} is not empty`);
  await pack({ ...options, demoModels: false, onFile: () => {} });
  const work = mkdtempSync(join(tmpdir(), 'release-'));
  try {
    stageCoordinator({ folder: join(work, 'coordinator'), version, repository });
    await archive(join(work, 'coordinator'), join(out, `${COORDINATOR_PACKAGE}-${version}.tgz`));
    renameSync(packClient(out, { version, repository }), join(out, `inference-client-${version}.tgz`));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  const createdAt = commitTime();
  for (const program of PROGRAMS) {
    writeFileSync(join(out, `${program.file}-${version}.cdx.json`), await sbomOf({ ...program, version, createdAt }));
  }
  for (const file of await writeSums(out)) onFile(join(out, file));
}

/** Writes `SHA256SUMS` of all files of a folder, for `sha256sum -c`. Returns their names. */
export async function writeSums(folder: string): Promise<string[]> {
  const files = readdirSync(folder)
    .filter((file) => file !== SUMS)
    .sort();
  const lines: string[] = [];
  for (const file of files) lines.push(`${(await measure(join(folder, file))).sha256}  ${file}\n`);
  writeFileSync(join(folder, SUMS), lines.join(''));
  return files;
}

/** `SOURCE_DATE_EPOCH` (reproducible-builds.org), or the time of the commit. */
function commitTime(env: NodeJS.ProcessEnv = process.env): Date {
  const seconds = env.SOURCE_DATE_EPOCH ?? execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' });
  if (!/^\d+\s*$/.test(seconds)) throw new Error('SOURCE_DATE_EPOCH must be seconds since 1970');
  return new Date(Number(seconds) * 1000);
}
