/**
 * Agent releases: the feed that the agent's updater reads, and the rollout header.
 *
 * The operator's key signs each release, so a compromised coordinator can withhold releases but not forge them.
 */
import Type, { type Static } from 'typebox';
import { concatBytes, utf8 } from './bytes.js';
import { canonicalJson } from './canonical-json.js';
import { Base64Schema, Sha256HexSchema } from './ids.js';

/** `process.platform` and `process.arch` of supported machines. */
export const RELEASE_PLATFORMS = ['darwin-arm64', 'linux-x64', 'linux-arm64'] as const;
export type ReleasePlatform = (typeof RELEASE_PLATFORMS)[number];

/** Three numbers without suffixes, so that the order of versions is unambiguous. */
export const RELEASE_VERSION_PATTERN = '^(0|[1-9]\\d{0,8})\\.(0|[1-9]\\d{0,8})\\.(0|[1-9]\\d{0,8})$';
export const ReleaseVersionSchema = Type.String({ pattern: RELEASE_VERSION_PATTERN });

/** 2 GiB: larger than any release, smaller than a disk. */
const MAX_RELEASE_BYTES = 2 ** 31;

export const ReleaseSchema = Type.Object(
  {
    version: ReleaseVersionSchema,
    platform: Type.Enum([...RELEASE_PLATFORMS]),
    /** URL of the archive. The server need not be trusted, because the signed SHA-256 authenticates the archive. */
    url: Type.String({ pattern: '^https?://[!-~]+$', maxLength: 2048 }),
    sha256: Sha256HexSchema,
    /** Size of the archive, in bytes. */
    size: Type.Integer({ minimum: 1, maximum: MAX_RELEASE_BYTES }),
    /** Minimum Node version. */
    node: ReleaseVersionSchema,
    /** Release notes for the owner. */
    notes: Type.String({ maxLength: 4000 }),
    /** base64 of an Ed25519 signature (RFC 8032) over {@link releaseBytes}. */
    signature: Base64Schema,
  },
  { additionalProperties: false },
);
export type Release = Static<typeof ReleaseSchema>;

/** Release feed of a coordinator. Releases are in any order. */
export const ReleaseFeedSchema = Type.Object({ releases: Type.Array(ReleaseSchema, { maxItems: 1000 }) }, { additionalProperties: false });
export type ReleaseFeed = Static<typeof ReleaseFeedSchema>;

/** Signed bytes: `"inference/release/v1" 0x00 ‖` canonical JSON (RFC 8785) of the release without its signature. */
export function releaseBytes(release: Omit<Release, 'signature'>): Uint8Array {
  const { version, platform, url, sha256, size, node, notes } = release;
  return concatBytes(utf8('inference/release/v1\0'), utf8(canonicalJson({ version, platform, url, sha256, size, node, notes })));
}

/** Negative if `a` is older than `b`, zero if equal, positive if newer. Both must match {@link ReleaseVersionSchema}. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)];
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Response header of the feed: a newer version that the coordinator withholds from this machine for now, in a staged rollout. */
export const ROLLOUT_HEADER = 'inference-rollout';

/** Reasons for withholding a version. `capacity`: enough machines are updating now. `failed_here`: the trial on this machine failed. */
export const ROLLOUT_REASONS = ['later_stage', 'capacity', 'failed_here', 'paused', 'halted'] as const;

export interface RolloutNotice {
  readonly version: string;
  readonly reason: (typeof ROLLOUT_REASONS)[number];
  /** Whether the owner may install the version now. */
  readonly mayUpdateNow: boolean;
}

export function rolloutHeader({ version, reason, mayUpdateNow }: RolloutNotice): string {
  return `version=${version}; reason=${reason}; now=${mayUpdateNow ? 'yes' : 'no'}`;
}

const ROLLOUT_PATTERN = /^version=((?:0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){2}); reason=([a-z_]{1,32}); now=(yes|no)$/;

/** Parses {@link ROLLOUT_HEADER}. Null if the header is missing or malformed. An unknown reason, from a newer coordinator, becomes `later_stage`. */
export function parseRolloutHeader(text: string | null): RolloutNotice | null {
  const [, version, reason, now] = ROLLOUT_PATTERN.exec(text ?? '') ?? [];
  if (version === undefined) return null;
  return { version, reason: ROLLOUT_REASONS.find((one) => one === reason) ?? 'later_stage', mayUpdateNow: now === 'yes' };
}
