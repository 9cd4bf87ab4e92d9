/** Shared schema parts of the console and admin APIs. Times are ISO 8601 strings; amounts are integers in micro-USD. */
import { NAME_PATTERN } from '@inference/protocol';
import Type, { type TSchema } from 'typebox';

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Maximum of one amount, in micro-USD: a million US dollars. */
export const MAX_AMOUNT_MICRO_USD = 1_000_000_000_000;

export const time = Type.String({ format: 'date-time', description: 'a time such as 2026-01-31T12:00:00Z' });
export const timeOrNull = Type.Union([time, Type.Null()], { description: 'a time such as 2026-01-31T12:00:00Z, or null' });
export const count = Type.Integer({ minimum: 0 });
export const microUsd = Type.Integer({ description: 'a whole number of micro-USD' });
export const usd = Type.String({ pattern: '^-?\\d+\\.\\d{6}$' });
export const name = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: NAME_PATTERN,
  description: 'a text of 1 to 100 characters, without line breaks or other control characters',
});
export const day = Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'a day such as 2026-01-31' });

/** Schema of a request body. Unknown members are rejected. */
export const requestBody = <Properties extends Record<string, TSchema>>(properties: Properties) =>
  Type.Object(properties, { additionalProperties: false, description: 'an object' });

/** Page of a list. `next_cursor`: query parameter for the next page; null on the last page. */
export const page = <Item extends TSchema>(item: Item) =>
  Type.Object({ data: Type.Array(item), next_cursor: Type.Union([Type.String(), Type.Null()]) });
