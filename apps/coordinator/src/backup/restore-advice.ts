/** `restoreAdvice` returns lines that tell the operator what to redo after a restore, because events since the backup are lost. */
import type { Restored } from './restore-backup.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** `now`: milliseconds since 1970. `keepSessions`: whether sessions of the backup were retained. */
export function restoreAdvice(
  restored: Restored,
  { now, keepSessions }: { readonly now: number; readonly keepSessions: boolean },
): string[] {
  const { manifest } = restored;
  const createdAt = Date.parse(manifest.created_at);
  return [
    `The network is in the state of ${manifest.created_at}, ${ageWords(now - createdAt)} ago. Redo what happened since:`,
    '  - Revoke the API keys, provider tokens and admin flags that were revoked since; suspend and quarantine again. Keys created since are unknown.',
    keepSessions
      ? '  - Sessions that were ended since are open again (--keep-sessions).'
      : '  - All sessions were ended: people sign in again. Passwords and second factors are those of the backup.',
    '  - Have Stripe send the events since then again (stripe events resend): each is credited once. Credit orders opened since by hand.',
    ...withdrawalAdvice(restored.openWithdrawals),
    ...(now - createdAt < HOUR_MS
      ? [
          '  - Sealed requests since the backup could be executed again by whoever recorded them, until they expire: at most an hour after they were sealed.',
        ]
      : []),
    ...logAdvice(restored),
    ...(manifest.settings.length === 0
      ? []
      : [`Set as before, because a backup does not contain settings: ${manifest.settings.join(', ')}.`]),
    ...restored.movedAside.map((place) => `The replaced data are in ${place}. Delete them when you are sure.`),
  ];
}

function withdrawalAdvice(ids: readonly string[]): string[] {
  if (ids.length === 0) return [];
  return [`  - Open withdrawals were perhaps paid since. Compare with your payments before you end any: ${ids.join(', ')}`];
}

function logAdvice({ newLogKey, publishedEntries }: Restored): string[] {
  if (newLogKey !== null) {
    return [`The transparency log is new. Give clients and witnesses its key: ${newLogKey}`];
  }
  if (publishedEntries === null) return [];
  return [
    `The transparency log ends at ${publishedEntries} published entries. If the network published more since, clients and witnesses have seen them ` +
      'and refuse the shorter log as a fork (split_view). Then restore with --new-log ORIGIN, with another origin, and give them the new key.',
  ];
}

function ageWords(ms: number): string {
  const [count, unit] = ms >= 2 * DAY_MS ? [ms / DAY_MS, 'days'] : ms >= 2 * HOUR_MS ? [ms / HOUR_MS, 'hours'] : [ms / 60_000, 'minutes'];
  return `${Math.max(0, Math.round(count))} ${unit}`;
}
