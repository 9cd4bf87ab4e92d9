/** What the coordinator says of this provider's standing, in one line for its owner. */
import { cleanLabel, type TrustMessage } from '@inference/protocol';

/** Level, whether jobs come, and the first thing that the owner can do. */
export function trustSentence(trust: TrustMessage): string {
  const gap = trust.parts.find(({ state }) => state !== 'ok');
  const advice = (trust.routable ? gap?.remedy : (trust.status_remedy ?? gap?.remedy)) ?? '';
  const more = gap?.remedy !== undefined && advice !== gap.remedy ? ` ${gap.remedy}` : '';
  const level = trust.trust_level === 'none' ? 'no trust' : `trust level ${trust.trust_level}`;
  const standing = `${trust.routable ? 'jobs may come' : `NO jobs come (${trust.status})`}${restraintWords(trust)}`;
  const part = gap === undefined ? '' : `; ${gap.name} is ${gap.state}`;
  // The words come from another machine and go to a terminal.
  return cleanLabel(`${level}, ${standing}${part}. ${advice}${more}`, 1024, level);
}

function restraintWords({ restraint }: TrustMessage): string {
  if (restraint === undefined) return '';
  if (restraint.state === 'on_probation') return `, one at a time (${restraint.reason})`;
  // A coordinator's number may be no date.
  const until = new Date(Math.min(restraint.until, LATEST_DATE_MS)).toISOString();
  return ` until ${until} (${restraint.reason})`;
}

/** ECMA-262, Time Values and Time Range. */
const LATEST_DATE_MS = 8.64e15;
