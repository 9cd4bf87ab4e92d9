/**
 * A release of the agent for one kind of machine, as the coordinator advertises it. The operator signs every member but the
 * signature itself, so that a coordinator that was taken over can withhold a release, but neither alter nor invent one.
 */
import Type, { type Static } from 'typebox';
import { concatBytes, utf8 } from './bytes.js';
import { canonicalJson } from './canonical-json.js';
import { Base64Schema, Sha256HexSchema } from './ids.js';

/** `process.platform` and `process.arch` of the machines that the agent is made for. */
export const RELEASE_PLATFORMS = ['darwin-arm64', 'linux-x64', 'linux-arm64'] as const;
export type ReleasePlatform = (typeof RELEASE_PLATFORMS)[number];

/** Three numbers and nothing else: what is newer than what is never a question of taste. */
export const ReleaseVersionSchema = Type.String({ pattern: '^(0|[1-9]\\d{0,8})\\.(0|[1-9]\\d{0,8})\\.(0|[1-9]\\d{0,8})$' });

/** 2 GiB: larger than any release, smaller than a disk. */
export const MAX_RELEASE_BYTES = 2 ** 31;

export const ReleaseSchema = Type.Object(
  {
    version: ReleaseVersionSchema,
    platform: Type.Enum([...RELEASE_PLATFORMS]),
    /** Of the archive. It is the signed SHA-256 that says what comes from there, whoever serves it. */
    url: Type.String({ pattern: '^https?://[!-~]+$', maxLength: 2048 }),
    sha256: Sha256HexSchema,
    /** Bytes of the archive. */
    size: Type.Integer({ minimum: 1, maximum: MAX_RELEASE_BYTES }),
    /** Least version of Node that it runs with. */
    node: ReleaseVersionSchema,
    /** What is new, for the owner. */
    notes: Type.String({ maxLength: 4000 }),
    /** base64 of an Ed25519 signature (RFC 8032) over {@link releaseBytes}. */
    signature: Base64Schema,
  },
  { additionalProperties: false },
);
export type Release = Static<typeof ReleaseSchema>;

/** What a coordinator serves: the releases that are on offer, in any order. */
export const ReleaseFeedSchema = Type.Object({ releases: Type.Array(ReleaseSchema, { maxItems: 1000 }) }, { additionalProperties: false });
export type ReleaseFeed = Static<typeof ReleaseFeedSchema>;

/** The bytes that are signed: `"inference/release/v1" 0x00 ‖` canonical JSON (RFC 8785) of the release without its signature. */
export function releaseBytes(release: Omit<Release, 'signature'>): Uint8Array {
  const { version, platform, url, sha256, size, node, notes } = release;
  return concatBytes(utf8('inference/release/v1\0'), utf8(canonicalJson({ version, platform, url, sha256, size, node, notes })));
}

/** Below zero where `a` is older than `b`, zero where they are the same. Both as {@link ReleaseVersionSchema} has them. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)];
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
