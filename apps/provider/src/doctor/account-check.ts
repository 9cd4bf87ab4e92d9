/** Whether this machine earns for somebody. A machine that nobody linked serves all the same, so that it is no problem, but it is told. */
import type { LinkStatus } from '../control/link-status.js';
import { type Finding, note, ok, problem } from './check.js';

export function judgeAccount({ state, account_name, reason, remedy }: LinkStatus): Finding[] {
  switch (state) {
    case 'linked':
      return [ok(`this machine earns for ${account_name || 'the account that it is linked to'}`)];
    case 'waiting':
      return [ok('this machine is signed in; the link is confirmed at the next connection')];
    case 'none':
      return [note('this machine earns for nobody yet', remedy ?? 'Run: inference-provider login')];
    default:
      return [
        problem(
          `this machine is not linked to an account: ${(reason ?? state).replaceAll('_', ' ')}`,
          remedy ?? 'Run: inference-provider login',
        ),
      ];
  }
}
