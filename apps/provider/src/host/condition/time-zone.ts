/** The time zone that the system is set to at this moment: a running process keeps the one that it was started in. */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** IANA name. `root`: `/` but for a simulated machine. Where nothing says it, that of this process. */
export function systemTimeZone(root = '/', env: Readonly<Record<string, string | undefined>> = process.env): string {
  const named = [root === '/' ? env.TZ : undefined, linkedZone(join(root, 'etc/localtime'))];
  return named.find((name) => name !== undefined && isZone(name)) ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** macOS and Linux both link the file of the zone, in different folders of that name. */
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
