/** Schema and reader of a backup's `manifest.json`, which lists the files, and figures with which a restored database is compared. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { errorReason, StartupError } from '../config/startup-error.js';

/** Written last, so a folder without a manifest is not a backup. */
export const MANIFEST_FILE = 'manifest.json';
/** Incremented when an older program would misread the new format. */
export const MANIFEST_FORMAT = 1;
/** Paths in a backup. */
export const DATABASE_FILES = { sqlite: 'database.sqlite', postgres: 'database.dump' } as const;
export const SECRETS_FILE = 'keys/secrets.json';
export const KEYS_FOLDER = 'keys';
export const IMAGES_FOLDER = 'images';

const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Sum = Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER });
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' });

const FileSchema = Type.Object({
  /** Relative to the backup's folder, with `/`. */
  path: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$', maxLength: 200 }),
  bytes: Count,
  sha256: Hash,
});

const ManifestSchema = Type.Object({
  format: Type.Literal(MANIFEST_FORMAT),
  /** Version of the program that made the backup. */
  program: Type.String({ maxLength: 100 }),
  /** Start of the backup, RFC 3339. */
  created_at: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$' }),
  database: Type.Union([
    Type.Object({ kind: Type.Literal('sqlite') }),
    Type.Object({
      kind: Type.Literal('postgres'),
      server_version: Type.String({ pattern: '^\\d+', maxLength: 50 }),
      schema: Type.String({ maxLength: 63 }),
    }),
  ]),
  /** Newest applied migration. */
  schema: Type.String({ maxLength: 200 }),
  migrations: Type.Array(Type.String({ maxLength: 200 }), { minItems: 1, maxItems: 10_000 }),
  has_keys: Type.Boolean(),
  has_images: Type.Boolean(),
  /** Names of set variables with secrets or file names. A backup does not contain their values. */
  settings: Type.Array(Type.String({ maxLength: 100 }), { maxItems: 100 }),
  /** Counts, and sums in micro-USD. Null: the schema of the database was not the program's. */
  ledger: Type.Union([
    Type.Null(),
    Type.Object({ postings: Count, accounts: Count, jobs: Count, holds: Count, held: Sum, owed: Sum, fees: Sum }),
  ]),
  /** Null in the case of `ledger`, or without a log. `root`: root hash of the published tree. */
  transparency_log: Type.Union([
    Type.Null(),
    Type.Object({
      verifier_key: Type.String({ maxLength: 500 }),
      size: Count,
      published_size: Count,
      root: Hash,
      /** The published checkpoint, signed at the time of the backup (C2SP signed-note). */
      checkpoint: Type.String({ maxLength: 16_384 }),
    }),
  ]),
  files: Type.Array(FileSchema, { minItems: 1, maxItems: 1_000_000 }),
});

export type Manifest = Static<typeof ManifestSchema>;
export type BackupFile = Static<typeof FileSchema>;
const validator = lazyValidator(ManifestSchema);

/** Reads and validates the manifest of a backup. Throws {@link StartupError}. */
export async function readManifest(directory: string): Promise<Manifest> {
  let text: string;
  try {
    text = await readFile(join(directory, MANIFEST_FILE), 'utf8');
  } catch (error) {
    throw new StartupError(`${directory} is not a complete backup: ${MANIFEST_FILE} cannot be read (${errorReason(error)}).`, {
      cause: error,
    });
  }
  const value = parseJson(text);
  if (validator().Check(value)) return value;
  const format: unknown = typeof value === 'object' && value !== null && 'format' in value ? value.format : null;
  if (typeof format === 'number' && format > MANIFEST_FORMAT) {
    throw new StartupError(
      `The backup has format ${format}, and this program reads format ${MANIFEST_FORMAT}: restore with a newer program.`,
    );
  }
  const [first] = validator().Errors(value);
  throw new StartupError(`${MANIFEST_FILE} of ${directory} is damaged at ${first?.instancePath || '/'}: ${first?.message ?? 'not JSON'}.`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
