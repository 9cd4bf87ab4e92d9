/** `rolloutText`: tells the owner why a newer version is not offered to this machine yet. */
import type { RolloutNotice } from '@inference/protocol';

export function rolloutText({ version, reason }: RolloutNotice): string {
  switch (reason) {
    case 'later_stage':
      return `Version ${version} is being rolled out; this machine's turn comes later.`;
    case 'capacity':
      return `Version ${version} is being rolled out; other machines are updating now, and this one follows.`;
    case 'failed_here':
      return `Version ${version} failed on this machine before.`;
    case 'paused':
      return `The rollout of version ${version} is paused.`;
    case 'halted':
      return `The rollout of version ${version} was halted: machines with it had problems.`;
    default:
      return reason satisfies never;
  }
}
