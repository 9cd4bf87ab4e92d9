/** Reads and writes `notifications.json` in the data directory: when each kind of notification was last shown. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { writePrivateFile } from '../files/private-file.js';
import { NOTIFICATION_KINDS, type ShownTimes } from './notification-policy.js';

const validator = lazyValidator(Type.Object(Object.fromEntries(NOTIFICATION_KINDS.map((kind) => [kind, Type.Optional(Type.Integer())]))));

const pathIn = (dataDir: string): string => join(dataDir, 'notifications.json');

/** Returns `{}` if the file is missing or damaged. */
export function readShownTimes(dataDir: string): ShownTimes {
  try {
    const value: unknown = JSON.parse(readFileSync(pathIn(dataDir), 'utf8'));
    return validator().Check(value) ? value : {};
  } catch {
    return {};
  }
}

/** Throws the file system's error. */
export function writeShownTimes(dataDir: string, times: ShownTimes): void {
  writePrivateFile(pathIn(dataDir), `${JSON.stringify(times)}\n`);
}
