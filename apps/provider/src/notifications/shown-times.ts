/** Times of the last notifications, in `notifications.json` of the data directory, so that a crash loop does not repeat them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Type from 'typebox';
import { Compile } from 'typebox/compile';
import { writePrivateFile } from '../files/private-file.js';
import { NOTIFICATION_KINDS, type ShownTimes } from './notification-policy.js';

const validator = Compile(Type.Object(Object.fromEntries(NOTIFICATION_KINDS.map((kind) => [kind, Type.Optional(Type.Integer())]))));

const pathIn = (dataDir: string): string => join(dataDir, 'notifications.json');

/** Empty if nothing is stored or readable. */
export function readShownTimes(dataDir: string): ShownTimes {
  try {
    const value: unknown = JSON.parse(readFileSync(pathIn(dataDir), 'utf8'));
    return validator.Check(value) ? value : {};
  } catch {
    return {};
  }
}

/** Throws the file system's error. */
export function writeShownTimes(dataDir: string, times: ShownTimes): void {
  writePrivateFile(pathIn(dataDir), `${JSON.stringify(times)}\n`);
}
