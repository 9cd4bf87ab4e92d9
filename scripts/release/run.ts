/** `npm run release -- COMMAND`: creates release keys, packs programs and signs releases. For operators (docs/releasing.md) and CI. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { RELEASE_PLATFORMS, type ReleasePlatform } from '@inference/protocol';
import { makeArtifacts } from './artifacts.js';
import { sectionOf } from './changelog.js';
import { addRelease } from './feed.js';
import { type FormulaRelease, formula } from './formula.js';
import { installerWith } from './installer.js';
import { makeReleaseKey, publicKeyOf, readReleaseKey, signRelease } from './keys.js';
import { stageMacPackage } from './macos-package.js';
import { ROOT } from './manifest.js';
import { archiveName, measure, pack } from './pack.js';
import { providerVersion } from './stage.js';
import { differingFiles } from './verify-reproducible.js';
import { prepareVersion, recordRelease } from './version.js';

const USAGE = `Usage: npm run release -- COMMAND

  key --out FILE                     creates a release key; FILE must be outside the repository
  pack --out DIR [--version X.Y.Z] [--public-key BASE64]… [--platform NAME]… [--demo-models]
                                     packs the agent for npm and for each platform (${RELEASE_PLATFORMS.join(', ')})
  sign --out DIR --key FILE --base-url URL [--version X.Y.Z] [--notes FILE]
                                     signs the archives in DIR into DIR/releases.json; writes DIR/install.sh and,
                                     for darwin-arm64, the Homebrew formula DIR/inference-provider.rb
  macos --out DIR [--version X.Y.Z]  inputs of the macOS package, from the darwin-arm64 archive in DIR

All programs, for a tagged release (docs/releases.md):
  version                            applies the changesets: versions, changelogs, lock file
  changelog --version X.Y.Z          prints the changelog's section of a version
  artifacts --out DIR [--version X.Y.Z] [--public-key BASE64]… [--platform NAME]… [--repository URL]
                                     packages of agent, coordinator and client, their SBOMs, and SHA256SUMS
  verify-reproducible [--against DIR] [flags of artifacts]
                                     builds the commit twice and compares the files, also with the files in DIR
  record --version X.Y.Z             adds the tagged coordinator to coordinator-releases.json
`;

/** Minimum version of Node.js for the released agent. */
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
    against: { type: 'string' },
    repository: { type: 'string' },
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
    const releaseKeys = values['public-key'] ?? [];
    await pack({ out: values.out, version, releaseKeys, platforms, demoModels: values['demo-models'] ?? false, onFile: printLine });
  } else if (command === 'sign' && values.out !== undefined && values.key !== undefined && values['base-url'] !== undefined) {
    await signAll(values.out, values.key, values['base-url'].replace(/\/+$/, ''), version);
  } else if (command === 'macos' && values.out !== undefined) {
    const folder = await stageMacPackage(values.out, version);
    process.stdout.write(`${folder}\nCopy this folder to a Mac, and run there: sh build-package.sh\n`);
  } else if (command === 'version') {
    process.stdout.write(`${await prepareVersion(new Date().toISOString().slice(0, 10))}\n`);
  } else if (command === 'changelog') {
    process.stdout.write(`${sectionOf(readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8'), version)}\n`);
  } else if (command === 'artifacts' && values.out !== undefined) {
    const platforms = (values.platform ?? []).map(platformOf);
    const { repository, 'public-key': releaseKeys = [] } = values;
    await makeArtifacts({ out: values.out, version, releaseKeys, platforms, repository, onFile: printLine });
  } else if (command === 'verify-reproducible') {
    verifyReproducible(version);
  } else if (command === 'record' && values.version !== undefined) {
    recordRelease(values.version);
  } else {
    process.stderr.write(USAGE);
    process.exit(2);
  }
}

function verifyReproducible(version: string): void {
  const keys = (values['public-key'] ?? []).flatMap((key) => ['--public-key', key]);
  const platforms = (values.platform ?? []).flatMap((platform) => ['--platform', platformOf(platform)]);
  const repository = values.repository === undefined ? [] : ['--repository', values.repository];
  const different = differingFiles(
    ['--version', version, ...keys, ...platforms, ...repository],
    values.against === undefined ? null : resolve(values.against),
  );
  if (different.length > 0) throw new Error(`these files differ between builds of the same sources: ${different.join(', ')}`);
  process.stdout.write('all files are identical\n');
}

function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
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
