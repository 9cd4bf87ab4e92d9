/** `systemTimeZone`: the current time zone of the system. Node itself only knows the zone at the start of the process. */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** IANA name. Falls back to the zone of this process. A simulated machine's folder may replace `root`. */
export function systemTimeZone(root = '/', env: Readonly<Record<string, string | undefined>> = process.env): string {
  const named = [root === '/' ? env.TZ : undefined, linkedZone(join(root, 'etc/localtime'))];
  return named.find((name) => name !== undefined && isZone(name)) ?? processZone();
}

/** The types of Node.js promise a name, but an unknown `TZ` gives none. */
function processZone(): string {
  const zone: string | undefined = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return zone ?? 'UTC';
}

/** macOS and Linux both link the zone file, in different folders. */
function linkedZone(path: string): string | undefined {
  try {
    return /zoneinfo(?:\.default)?\/(.+)$/.exec(readlinkSync(path))?.[1];
  } catch {
    return undefined;
  }
}

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
