/** `fetchRelease` fetches release descriptions from the untrusted coordinator, within bounds, and verifies their signature. */
import { RELEASE_PLATFORMS, type Release, type ReleasePlatform, ReleaseSchema } from '@inference/protocol';
import { verifyRelease } from '@inference/protocol/crypto';
import { Compile } from 'typebox/compile';

/** The update failed; the message is a sentence for the owner. `unreachable`: the coordinator did not answer and may later. */
export class UpdateError extends Error {
  constructor(
    message: string,
    readonly unreachable = false,
  ) {
    super(message);
    this.name = 'UpdateError';
  }
}

const ANSWER_MS = 10_000;
const MAX_BYTES = 64 << 10;
const releaseValidator = Compile(ReleaseSchema);

export interface ReleaseQuery {
  /** HTTP address without a trailing slash. */
  readonly coordinator: string;
  readonly platform: ReleasePlatform;
  /** Null: the newest. */
  readonly version: string | null;
  readonly keys: readonly string[];
  readonly signal: AbortSignal;
}

/** Null where the coordinator offers none. Throws {@link UpdateError}, or the signal's reason. */
export async function fetchRelease({ coordinator, platform, version, keys, signal }: ReleaseQuery): Promise<Release | null> {
  const url = `${coordinator}/v1/agent/releases/${version ?? 'latest'}?platform=${platform}`;
  const text = await readAnswer(url, signal);
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UpdateError('the coordinator sent an invalid release description');
  }
  if (!releaseValidator.Check(value)) throw new UpdateError('the coordinator sent an invalid release description');
  if (keys.length === 0) throw new UpdateError('this build has no release key, so it cannot verify updates');
  if (!verifyRelease(value, keys)) throw new UpdateError("the offered release lacks the publisher's signature and was not used");
  if (value.platform !== platform)
    throw new UpdateError(`the coordinator offered a release for ${value.platform}; this machine is ${platform}`);
  if (version !== null && value.version !== version)
    throw new UpdateError(`the coordinator offered version ${value.version} instead of ${version}`);
  return value;
}

async function readAnswer(url: string, signal: AbortSignal): Promise<string | null> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  try {
    const response = await fetch(url, { redirect: 'error', signal: limit, headers: { accept: 'application/json' } });
    if (response.status === 404) {
      await response.body?.cancel();
      return null;
    }
    if (!response.ok) {
      await response.body?.cancel();
      throw new UpdateError(`the coordinator answered the request for a release with status ${response.status}`, true);
    }
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.length;
      if (bytes > MAX_BYTES) throw new UpdateError("the coordinator's description of the release is too long");
      parts.push(part);
    }
    return Buffer.concat(parts).toString('utf8');
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UpdateError) throw error;
    throw new UpdateError('the coordinator did not answer whether there is a newer version', true);
  }
}

/** Release platform of this machine; null if there are no releases for it. */
export function releasePlatform(): ReleasePlatform | null {
  return RELEASE_PLATFORMS.find((platform) => platform === `${process.platform}-${process.arch}`) ?? null;
}
