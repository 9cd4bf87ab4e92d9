/** Downloads the keyset (the sealing keys of all providers), and checks its schema, provider ids and age. */
import { CLOCK_TOLERANCE_MS, type E2eKeyset, E2eKeysetSchema, keysetLeafBytes, lazyValidator } from '@inference/protocol';
import { E2ERefused } from '../refusal.js';
import { canonicalBytesOrNull, type DownloadOptions, downloadJson, type Fetch } from './download.js';

/** Maximum age of a keyset, in milliseconds. Providers answer challenges every five minutes, which changes the keyset. */
const MAX_KEYSET_AGE_MS = 30 * 60_000;

const validator = lazyValidator(E2eKeysetSchema);

export interface KeysetSource {
  readonly fetch: Fetch;
  /** Origin and base path, without `/v1`. */
  readonly base: string;
}

/** Returns a valid keyset. Throws {@link E2ERefused} `downgraded`, `stale`, `targeted` or `coordinator_said`. */
export async function downloadKeyset({ fetch, base }: KeysetSource, options: DownloadOptions, now: number): Promise<E2eKeyset> {
  const value = await downloadJson(fetch, `${base}/v1/e2e/keyset`, options);
  if (!validator().Check(value)) {
    const [first] = validator().Errors(value);
    throw new E2ERefused('downgraded', `The keyset is not valid: ${first?.instancePath || '/'} ${first?.message ?? ''}.`);
  }
  if (value.providers.length === 0) throw new E2ERefused('downgraded', 'The keyset names no provider.');
  if (canonicalBytesOrNull(() => keysetLeafBytes(value)) === null) throw new E2ERefused('downgraded', 'The keyset has no canonical form.');
  const ids = new Set(value.providers.map(({ provider_id }) => provider_id));
  if (ids.size !== value.providers.length) throw new E2ERefused('targeted', 'The keyset names a provider twice.');
  if (now - value.issued_at > MAX_KEYSET_AGE_MS) throw new E2ERefused('stale', 'The keyset is too old.');
  if (value.issued_at - now > CLOCK_TOLERANCE_MS) throw new E2ERefused('stale', 'The keyset is from the future: compare the clocks.');
  return value;
}
