/** `fetchRelease` fetches a release description from the coordinator, which is not trusted, and verifies the publisher's signature. */
import {
  lazyValidator,
  parseRolloutHeader,
  RELEASE_PLATFORMS,
  type Release,
  type ReleasePlatform,
  ReleaseSchema,
  ROLLOUT_HEADER,
  type RolloutNotice,
} from '@inference/protocol';
import { verifyRelease } from '@inference/protocol/crypto';

/** The update failed. The message is a sentence for the owner. `unreachable`: no connection, no answer in time, or an error status. */
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
const releaseValidator = lazyValidator(ReleaseSchema);

export interface ReleaseQuery {
  /** HTTP address without a trailing slash. */
  readonly coordinator: string;
  readonly platform: ReleasePlatform;
  /** Null for the newest. */
  readonly version: string | null;
  /** Public keys of publishers. One of them must have signed the release. */
  readonly keys: readonly string[];
  readonly signal: AbortSignal;
  /** Without it, or if its token is null, the coordinator does not learn which machine asks. */
  readonly machine?: AskingMachine;
}

/** Facts by which the coordinator decides whether a version is offered to the machine yet: releases are offered in stages (rollout). */
export interface AskingMachine {
  /** Session token; null while not connected. */
  readonly token: string | null;
  readonly channel: 'stable' | 'canary';
  /** Last version that did not start to serve on this machine after its installation, or null. */
  readonly failed: string | null;
  /** Whether nothing will be installed. The coordinator then reserves no place in the rollout. */
  readonly isCheck: boolean;
}

export interface OfferedRelease {
  readonly release: Release | null;
  /** Version that the coordinator withholds from this machine. Unverified, not necessarily newer, and only shown. */
  readonly notice: RolloutNotice | null;
}

/** Verifies the signature. Throws {@link UpdateError}, or the signal's reason. */
export async function fetchRelease({ coordinator, platform, version, keys, signal, machine }: ReleaseQuery): Promise<OfferedRelease> {
  const query = new URLSearchParams({ platform });
  if (machine?.channel === 'canary') query.set('channel', 'canary');
  if (machine !== undefined && machine.failed !== null) query.set('failed', machine.failed);
  if (machine?.isCheck === true) query.set('check', 'yes');
  const url = `${coordinator}/v1/agent/releases/${version ?? 'latest'}?${query}`;
  const { text, notice } = await readAnswer(url, machine?.token ?? null, signal);
  if (text === null) return { release: null, notice };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new UpdateError('the coordinator sent an invalid release description');
  }
  if (!releaseValidator().Check(value)) throw new UpdateError('the coordinator sent an invalid release description');
  if (keys.length === 0) throw new UpdateError('this build has no release key, so it cannot verify updates');
  if (!verifyRelease(value, keys)) throw new UpdateError("the offered release lacks the publisher's signature and was not used");
  if (value.platform !== platform)
    throw new UpdateError(`the coordinator offered a release for ${value.platform}; this machine is ${platform}`);
  if (version !== null && value.version !== version)
    throw new UpdateError(`the coordinator offered version ${value.version} instead of ${version}`);
  return { release: value, notice };
}

/** `text` is null if the coordinator offers no such release. */
async function readAnswer(
  url: string,
  token: string | null,
  signal: AbortSignal,
): Promise<{ readonly text: string | null; readonly notice: RolloutNotice | null }> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
  try {
    const headers = { accept: 'application/json', ...(token === null ? {} : { authorization: `Bearer ${token}` }) };
    const response = await fetch(url, { redirect: 'error', signal: limit, headers });
    const notice = parseRolloutHeader(response.headers.get(ROLLOUT_HEADER));
    if (response.status === 404) {
      await response.body?.cancel();
      return { text: null, notice };
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
    return { text: Buffer.concat(parts).toString('utf8'), notice };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UpdateError) throw error;
    throw new UpdateError('the coordinator did not answer whether there is a newer version', true);
  }
}

/** Release platform of this machine. Null if it gets no releases. */
export function releasePlatform(): ReleasePlatform | null {
  return RELEASE_PLATFORMS.find((platform) => platform === `${process.platform}-${process.arch}`) ?? null;
}
