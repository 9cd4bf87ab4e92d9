/** `npm run release -- COMMAND` creates the operator's key, packs the agent, signs archives into the feed (docs/releasing.md). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { RELEASE_PLATFORMS, type ReleasePlatform } from '@inference/protocol';
import { addRelease } from './feed.js';
import { type FormulaRelease, formula } from './formula.js';
import { installerWith } from './installer.js';
import { makeReleaseKey, publicKeyOf, readReleaseKey, signRelease } from './keys.js';
import { stageMacPackage } from './macos-package.js';
import { archiveName, measure, pack } from './pack.js';
import { providerVersion } from './stage.js';

const USAGE = `Usage: npm run release -- COMMAND

  key --out FILE                     makes a release key; FILE must lie outside of the repository
  pack --out DIR [--version X.Y.Z] [--public-key BASE64]… [--platform NAME]… [--demo-models]
                                     archives for npm and for each platform (${RELEASE_PLATFORMS.join(', ')})
  sign --out DIR --key FILE --base-url URL [--version X.Y.Z] [--notes FILE]
                                     signs the archives in DIR into DIR/releases.json; writes DIR/install.sh and,
                                     for darwin-arm64, the Homebrew formula DIR/inference-provider.rb
  macos --out DIR [--version X.Y.Z]  inputs of the macOS package, from the darwin-arm64 archive in DIR
`;

const NODE = '20.19.0';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: 'string' },
    key: { type: 'string' },
    version: { type: 'string' },
    notes: { type: 'string' },
    'base-url': { type: 'string' },
    'public-key': { type: 'string', multiple: true },
    platform: { type: 'string', multiple: true },
    'demo-models': { type: 'boolean' },
  },
});

try {
  await run(positionals[0]);
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : 'unknown error'}\n`);
  process.exit(1);
}

async function run(command: string | undefined): Promise<void> {
  const version = values.version ?? providerVersion();
  if (command === 'key' && values.out !== undefined) {
    process.stdout.write(`${makeReleaseKey(values.out)}\n`);
  } else if (command === 'pack' && values.out !== undefined) {
    const platforms = (values.platform ?? []).map(platformOf);
    const onFile = (file: string): boolean => process.stdout.write(`${file}\n`);
    const releaseKeys = values['public-key'] ?? [];
    await pack({ out: values.out, version, releaseKeys, platforms, demoModels: values['demo-models'] ?? false, onFile });
  } else if (command === 'sign' && values.out !== undefined && values.key !== undefined && values['base-url'] !== undefined) {
    await signAll(values.out, values.key, values['base-url'].replace(/\/+$/, ''), version);
  } else if (command === 'macos' && values.out !== undefined) {
    const folder = await stageMacPackage(values.out, version);
    process.stdout.write(`${folder}\nCopy this folder to a Mac, and run there: sh build-package.sh\n`);
  } else {
    process.stderr.write(USAGE);
    process.exit(2);
  }
}

async function signAll(out: string, keyFile: string, baseUrl: string, version: string): Promise<void> {
  const key = readReleaseKey(keyFile);
  const notes = values.notes === undefined ? '' : readFileSync(values.notes, 'utf8').trim();
  const packed = RELEASE_PLATFORMS.filter((platform) => existsSync(join(out, archiveName(version, platform))));
  if (packed.length === 0) throw new Error(`there is no archive of version ${version} for any platform in ${out}: pack first`);
  for (const platform of packed) {
    const file = join(out, archiveName(version, platform));
    const release = { version, platform, url: `${baseUrl}/${basename(file)}`, ...(await measure(file)), node: NODE, notes };
    addRelease(join(out, 'releases.json'), signRelease(release, key));
    if (platform === 'darwin-arm64') writeFormula(out, release);
    process.stdout.write(`${version} ${platform} ${release.sha256}\n`);
  }
  writeFileSync(join(out, 'install.sh'), installerWith(publicKeyOf(key)), { mode: 0o755 });
}

/** Homebrew downloads from https only: without https there is no formula. */
function writeFormula(out: string, release: FormulaRelease): void {
  if (!release.url.startsWith('https:')) process.stderr.write('no Homebrew formula: --base-url is not an https address\n');
  else writeFileSync(join(out, 'inference-provider.rb'), formula(release));
}

function platformOf(name: string): ReleasePlatform {
  const found = RELEASE_PLATFORMS.find((platform) => platform === name);
  if (found === undefined) throw new Error(`there is no platform ${name}: ${RELEASE_PLATFORMS.join(', ')}`);
  return found;
}
