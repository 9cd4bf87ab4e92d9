/** Whether what is offered is an update at all: newer than what is installed, and not known to be broken here. Pure. */
import { compareVersions, type Release } from '@inference/protocol';
import type { BrokenVersion } from './trial.js';

export type Choice =
  | { readonly kind: 'update'; readonly release: Release }
  | { readonly kind: 'current' }
  | { readonly kind: 'broken'; readonly version: string; readonly reason: string };

/** An older release, which its maker once signed, is no update: whoever serves it again serves its faults. */
export function choose(offered: Release | null, installed: string, broken: readonly BrokenVersion[]): Choice {
  if (offered === null || compareVersions(offered.version, installed) <= 0) return { kind: 'current' };
  const known = broken.find(({ version }) => version === offered.version);
  return known === undefined ? { kind: 'update', release: offered } : { kind: 'broken', version: known.version, reason: known.reason };
}
