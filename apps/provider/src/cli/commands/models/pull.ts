/** `models pull`: adds a model to the model store: downloads it, or records where a local file is. Checks its hash if one is known. */

import { parseArgs } from 'node:util';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { dataDirOf } from '../../../config/data-dir.js';
import { byteSizeText } from '../../../models/byte-size-text.js';
import { addOnPath, installAddOn, isAddOnInstalled } from '../../../models/store/add-on.js';
import { modelRepositoryOf } from '../../../models/store/model-repository.js';
import { type Pulled, pull } from '../../../models/store/pull.js';
import type { Progress } from '../../../models/store/transfer.js';
import { StartupError } from '../../../startup-error.js';
import type { Command } from '../../command.js';
import { abortOnInterrupt } from '../../input/interrupt.js';
import { UsageError } from '../../input/owner-options.js';
import { COMMON_OPTIONS, openStore, readArguments, withErrorText } from '../../models-command.js';
import { ProgressLine } from '../../output/progress-line.js';
import { print } from '../../output/terminal.js';

const USAGE = `models pull hf:OWNER/REPOSITORY[:QUANTIZATION]|https://ADDRESS|FILE [--id ID] [--sha256 HEX]
      [--projector PROJECTOR | --text-only] [--coordinator URL] [--data-dir DIR] [--json]`;

export const modelsPullCommand: Command = {
  name: 'models pull',
  summary: 'Downloads and verifies a model, or resumes a download.',
  usage: `${USAGE}

A FILE stays where it is. --id sets the name that clients use. --sha256 is the expected checksum. Without it, the checksum
is compared with that of the catalog (--coordinator) or the repository, if there is one. To resume an interrupted download,
run the command again.

A vision model is pulled with its projector (mmproj). --projector names another one: a file of the repository or its
precision, such as BF16; for a FILE, a path; for an ADDRESS, an address. --text-only leaves the projector out.`,
  run: (args) => withErrorText(() => run(args)),
};

const PULL_OPTIONS = {
  ...COMMON_OPTIONS,
  id: { type: 'string' },
  sha256: { type: 'string' },
  projector: { type: 'string' },
  'text-only': { type: 'boolean' },
  coordinator: { type: 'string' },
} as const;

/** Throws {@link UsageError}. */
function pullArguments(args: readonly string[]) {
  const { values, positionals } = readArguments(
    USAGE,
    1,
    () => parseArgs({ args: [...args], options: PULL_OPTIONS, allowPositionals: true }),
    PULL_OPTIONS,
  );
  const sha256 = values.sha256?.toLowerCase() ?? null;
  if (sha256 !== null && !/^[0-9a-f]{64}$/.test(sha256)) throw new UsageError('--sha256 must be 64 hexadecimal digits.');
  if (values.id !== undefined && !/^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,255}$/.test(values.id)) {
    throw new UsageError('--id must begin with a letter or a digit and hold only letters, digits and ._:/@+-');
  }
  if (values.projector !== undefined && values['text-only'] === true) throw new UsageError('Use --projector or --text-only, not both.');
  return { values, source: positionals[0] as string, sha256 };
}

async function run(args: readonly string[]): Promise<number> {
  const { values, source, sha256 } = pullArguments(args);
  const { store, hashes } = openStore(values['data-dir']);
  const dataDir = dataDirOf(values);
  const signal = abortOnInterrupt(new StartupError('the download was interrupted; run the same command again to resume'));
  const json = values.json ?? false;
  const progressLine = new ProgressLine(process.stderr, performance.now.bind(performance));
  const { coordinator } = values;
  let isFirstOfFile = true;
  const pulled = await pull({
    source,
    store,
    hashes,
    modelRepository: modelRepositoryOf(process.env),
    id: values.id ?? null,
    projector:
      values.projector !== undefined
        ? { kind: 'named', name: values.projector }
        : { kind: values['text-only'] === true ? 'none' : 'usual' },
    sha256,
    catalogueHashesOf: async (id) => (coordinator === undefined ? null : await catalogueHashes(coordinator, id, signal)),
    installEngine: async (installSignal) => {
      const path = addOnPath(dataDir);
      if (!isAddOnInstalled(path) && !json) await print(['Installing the engine for this kind of model (about 650 MB)']);
      await installAddOn(path, installSignal);
    },
    onFile: ({ name, index, count }) => {
      progressLine.end();
      isFirstOfFile = true;
      if (!json) void print([count === 1 ? name : `${name} (${index + 1} of ${count})`]);
    },
    onProgress: (progress: Progress) => {
      if (isFirstOfFile && !json && progress.phase === 'downloading' && progress.bytes > 0)
        void print([`Resuming after ${byteSizeText(progress.bytes)}`]);
      isFirstOfFile = false;
      const report = progressLine.update(progress);
      if (json && report !== null) void print([JSON.stringify({ type: 'progress', ...report })]);
    },
    signal,
    now: Date.now,
  }).finally(() => progressLine.end());
  const { entry, verifiedBy } = pulled;
  const report = { type: 'pulled', ...entry, vision: entry.projector !== undefined, verified_by: verifiedBy };
  // Also waits for the lines above, because stdout keeps the order.
  await print(json ? [JSON.stringify(report)] : linesOf(pulled, values['data-dir']));
  return 0;
}

function linesOf({ entry, verifiedBy, leftOut }: Pulled, dataDir: string | undefined): string[] {
  const checked = verifiedBy === null ? 'checksum not verified: none to compare with' : `checksum matches the ${EXPECTED_BY[verifiedBy]}`;
  const vision = entry.projector === undefined ? '' : ', reads images';
  const dataDirOption = dataDir === undefined ? '' : ` --data-dir ${dataDir}`;
  return [
    `${entry.id}: ${byteSizeText(entry.bytes)}${vision}, ${checked}. SHA-256 ${entry.sha256}`,
    ...(leftOut === null ? [] : [LEFT_OUT[leftOut]]),
    ...(entry.use === null ? [`Serve it with: inference-provider models use ${entry.id}${dataDirOption}`] : []),
  ];
}

const EXPECTED_BY = { owner: 'requested one', catalogue: "catalog's", repository: "repository's" } as const;

const LEFT_OUT = {
  audio: "Serves text only: the repository's projector is for audio.",
  hash: 'Serves text only: the expected checksum is that of the model without its projector.',
} as const;

const catalogue = lazyValidator(
  Type.Object({ data: Type.Array(Type.Object({ id: Type.String(), file_sha256: Type.Array(Type.String()) })) }),
);
const CATALOGUE_TIMEOUT_MS = 15_000;

/** Null if the catalogue has none. Throws {@link StartupError} without an answer. */
async function catalogueHashes(coordinator: string, id: string, signal: AbortSignal): Promise<readonly string[] | null> {
  let body: unknown;
  try {
    const url = new URL('/v1/catalogue', coordinator);
    const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(CATALOGUE_TIMEOUT_MS)]) });
    body = response.ok ? await response.json() : null;
  } catch {
    signal.throwIfAborted();
  }
  if (!catalogue().Check(body)) throw new StartupError("the coordinator's catalog cannot be read");
  const hashes = body.data.find((entry) => entry.id === id)?.file_sha256 ?? [];
  return hashes.length === 0 ? null : hashes;
}
