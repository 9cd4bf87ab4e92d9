/** `inference-verify log`: audits the transparency log. With `--store FILE`, reads only entries newer than the stored audit. */
import { access, rename, writeFile } from 'node:fs/promises';
import {
  fromUtf8,
  LogFormatError,
  LogVerifier,
  lazyValidator,
  type StoredCheckpoint,
  StoredCheckpointSchema,
  type TileId,
  tilePath,
  toPrintable,
} from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { AuditedLogSchema, auditLog, describeEntryCounts } from '../audit-log.js';
import { nobleLogCrypto } from '../log-crypto.js';
import { type Command, type Report, readArguments, UnavailableError, UsageError } from './command.js';
import { baseAddress, download, readJson } from './download.js';

const MAX_CHECKPOINT_AGE_MS = 3_600_000;
/** Maximum new entries per audit, because all their hashes are in memory. */
const MAX_NEW_ENTRIES = 1_000_000;

/** Content of the file that `--store` names. */
const StoreSchema = Type.Object(
  {
    key: Type.String({ maxLength: 1024 }),
    checkpoint: StoredCheckpointSchema,
    /** Absent in files of earlier versions; the next audit then reads the whole log. */
    audited: Type.Optional(AuditedLogSchema),
  },
  { additionalProperties: false },
);
type Store = Static<typeof StoreSchema>;
const storeValidator = lazyValidator(StoreSchema);

export const logCommand: Command = {
  usage: 'log --base-url URL [--store FILE] [--key VERIFIER_KEY] [--witnesses KEY,KEY] [--quorum N]',
  summary: 'Audit the transparency log: entries, tiles, signatures, and the growth since the audit in FILE.',
  async run(args) {
    const { positional, text } = readArguments(args, {
      'base-url': { type: 'string' },
      store: { type: 'string' },
      key: { type: 'string' },
      witnesses: { type: 'string' },
      quorum: { type: 'string' },
    });
    if (positional !== null) throw new UsageError('log needs --base-url, and no other argument');
    const prefix = `${baseAddress(text('base-url'))}/e2e/log`;
    const file = text('store');
    const previous = file === null ? null : await readStore(file);
    const witnesses = text('witnesses')?.split(',') ?? [];
    const minCosignatures = quorumOf(text('quorum'), witnesses.length);
    const pinned = text('key') ?? previous?.key ?? null;
    const key = pinned ?? (await downloadText(`${prefix}/key`)).trim();
    const readTile = cachedTiles(prefix);
    const verifier = verifierOf({ key, witnesses, minCosignatures }, readTile);
    const note = await downloadText(`${prefix}/checkpoint`);
    const verdict = await verifier.verifyCheckpoint(note, previous?.checkpoint ?? null, Date.now());
    if (!verdict.ok) {
      return { verified: false, text: `NOT VERIFIED: ${verdict.code}\n${toPrintable(verdict.reason)}`, json: verdict };
    }
    const { origin, size, root, signedAt, cosignatures } = verdict.checkpoint;
    const newCount = size - (previous?.audited?.size ?? 0);
    if (newCount > MAX_NEW_ENTRIES) {
      throw new UnavailableError(`the log has ${newCount} new entries, more than this program reads (${MAX_NEW_ENTRIES})`);
    }
    const { audited, ...audit } = await auditLog(nobleLogCrypto, { size, root }, readTile, previous?.audited);
    const verified = audit.problems.length === 0;
    if (verified && file !== null) await writeStore(file, { key, checkpoint: verdict.stored, audited });
    const lines = [
      `${verified ? 'verified' : 'NOT VERIFIED'}: ${origin}, ${size} entries, signed ${new Date(signedAt).toISOString()}`,
      `entries: ${describeEntryCounts(audit.entryCounts)}`,
      `audited now: ${audit.newEntryCount}, by earlier audits: ${audited.size - audit.newEntryCount}`,
      ...(audit.repeatedEpochs === 0
        ? []
        : [`${audit.repeatedEpochs} keyset(s) repeat an epoch: published for some clients only, or by coordinators of an earlier version`]),
      describePrevious(previous?.checkpoint ?? null),
      describeKey(pinned !== null, key),
      witnesses.length === 0
        ? 'unwitnessed: the operator could show another log to others, and only a comparison with theirs would reveal this'
        : `cosigned by ${cosignatures.map(({ name }) => name).join(', ') || 'no witness'}`,
      ...audit.problems,
    ];
    const json = { ok: verified, origin, size, signed_at: signedAt, cosigned_by: cosignatures.map(({ name }) => name), ...audit };
    return { verified, text: lines.map(toPrintable).join('\n'), json } satisfies Report;
  },
};

function quorumOf(text: string | null, witnessCount: number): number {
  const quorum = text === null ? Math.min(1, witnessCount) : Number(text);
  if (!Number.isInteger(quorum) || quorum < 0 || quorum > witnessCount) {
    throw new UsageError(`--quorum must be a whole number from 0 to ${witnessCount}, the number of --witnesses`);
  }
  return quorum;
}

function verifierOf(
  policy: { readonly key: string; readonly witnesses: readonly string[]; readonly minCosignatures: number },
  readTile: (tile: TileId) => Promise<Uint8Array>,
): LogVerifier {
  try {
    return new LogVerifier({ crypto: nobleLogCrypto, policy: { ...policy, maxAgeMs: MAX_CHECKPOINT_AGE_MS }, readTile });
  } catch (error) {
    if (error instanceof LogFormatError) throw new UsageError(`--key and --witnesses need verifier keys: ${error.message}`);
    throw error;
  }
}

/** Returns a function that downloads tiles, each only once. */
function cachedTiles(prefix: string): (tile: TileId) => Promise<Uint8Array> {
  const tiles = new Map<string, Promise<Uint8Array>>();
  return (tile) => {
    const url = `${prefix}/${tilePath(tile)}`;
    const reading = tiles.get(url) ?? downloadBytes(url);
    tiles.set(url, reading);
    return reading;
  };
}

async function downloadBytes(url: string): Promise<Uint8Array> {
  const { status, body } = await download(url, {});
  if (status !== 200) throw new UnavailableError(`${url} answered ${status}`);
  return new Uint8Array(body);
}

async function downloadText(url: string): Promise<string> {
  const bytes = await downloadBytes(url);
  try {
    return fromUtf8(bytes);
  } catch {
    throw new UnavailableError(`${url} is not UTF-8`);
  }
}

/** Content of the store; null if the file does not exist. Throws UnavailableError for other content. */
async function readStore(file: string): Promise<Store | null> {
  const exists = await access(file).then(
    () => true,
    () => false,
  );
  if (!exists) return null;
  const value = await readJson(file);
  if (storeValidator().Check(value)) return value;
  throw new UnavailableError(`${file} is not a store of this command`);
}

/** Replaces the file in one step, so that an interruption leaves the previous content. */
async function writeStore(file: string, value: Store): Promise<void> {
  try {
    await writeFile(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`);
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new UnavailableError(`${file} cannot be written: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function describePrevious(previous: StoredCheckpoint | null): string {
  return previous === null ? 'no earlier checkpoint to compare with' : `extends the stored checkpoint of ${previous.size} entries`;
}

function describeKey(isPinned: boolean, key: string): string {
  return isPinned ? `key: ${key}` : `key, taken from the network itself: ${key}`;
}
