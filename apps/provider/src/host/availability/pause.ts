/** The owner's pause as the text of the file `pause.json`: conversion in both directions. */

import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import type { Pause } from './availability.js';

/** Longest pause with an end, in milliseconds. */
export const MAX_PAUSE_MS = 30 * 24 * 3_600_000;

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Moment = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const storedPause = lazyValidator(
  Type.Object({
    until: nullable(Moment),
    console: Type.Optional(Type.Object({ at: Moment, account: nullable(Type.String({ maxLength: 256 })) })),
  }),
);

export function pauseText({ until, console: from }: Pause): string {
  return `${JSON.stringify({ until, ...(from === undefined ? {} : { console: from }) })}\n`;
}

/** Returns null for an expired pause or a damaged text. `now` is in milliseconds since 1970. */
export function readPause(text: string, now: number): Pause | null {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return null;
  }
  if (!storedPause().Check(found)) return null;
  return found.until === null || found.until > now ? found : null;
}
