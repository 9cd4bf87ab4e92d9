/**
 * `tsx scripts/deploy/stage-image.ts coordinator|agent FOLDER`: writes the contents of a container image. Run by the Dockerfiles.
 *
 * FOLDER gets the released package, links to its commands, and a bill of materials. The coordinator's Dockerfile then runs `npm ci`
 * there, because an unbundled package (better-sqlite3) is compiled. Needs `npm run build` first.
 */
import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { ReleasePlatform } from '@inference/protocol';
import { installDependencies } from '../release/archive.js';
import { ROOT, readManifest } from '../release/manifest.js';
import { sbomOf } from '../release/sbom.js';
import { stage } from '../release/stage.js';
import { COORDINATOR_PACKAGE, stageCoordinator } from '../release/stage-coordinator.js';

const PLATFORM: ReleasePlatform = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';
const IMAGES = {
  coordinator: { workspace: 'apps/coordinator', name: COORDINATOR_PACKAGE, write: writeCoordinator },
  agent: { workspace: 'apps/provider', name: 'inference-provider', write: writeAgent },
} as const;

const [image = '', folder = ''] = process.argv.slice(2);
const staged = Object.hasOwn(IMAGES, image) ? IMAGES[image as keyof typeof IMAGES] : null;
if (staged === null || folder === '' || existsSync(folder)) {
  process.stderr.write('usage: stage-image.ts coordinator|agent FOLDER\n\nFOLDER must not exist.\n');
  process.exit(2);
}
const { workspace, name } = staged;
const { version } = readManifest(join(ROOT, workspace));
await staged.write();
linkCommands();
writeFileSync(join(folder, 'sbom.cdx.json'), await sbomOf({ workspace, name, version, createdAt: new Date(), platform: PLATFORM }));

async function writeCoordinator(): Promise<void> {
  stageCoordinator({ folder, version });
}

/** No release keys: containers are updated by new images, never by the agent. */
async function writeAgent(): Promise<void> {
  stage({ folder, version, releaseKeys: [], demoModels: true });
  await installDependencies(folder, PLATFORM);
}

/** Links `bin/COMMAND` to `bin/COMMAND.js`: the image's PATH contains `/app/bin`. */
function linkCommands(): void {
  const bin = readManifest(folder).bin as Readonly<Record<string, string>>;
  for (const [command, file] of Object.entries(bin)) symlinkSync(basename(file), join(folder, dirname(file), command));
}
