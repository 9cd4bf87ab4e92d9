/** Which account the machine earns for, in one sentence. Pure. */
import type { LinkStatus } from '../../control/link-status.js';

export function accountText({ state, account_name, reason, remedy }: LinkStatus): string {
  switch (state) {
    case 'linked':
      return account_name === null || account_name === '' ? 'linked' : account_name;
    case 'waiting':
      return 'signed in; the link is confirmed at the next connection';
    case 'none':
      return `NONE. ${remedy ?? ''}`;
    default:
      return `NOT LINKED (${(reason ?? state).replaceAll('_', ' ')}). ${remedy ?? ''}`;
  }
}
