/**
 * Field schemas that several formats share.
 *
 * A description completes the error message "<field> must be ...". Fields made with `nullable` may be absent or null, which is the same.
 */
import Type, { type TSchema } from 'typebox';

export const nullable = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Optional(Type.Union([schema, Type.Null()], { description }));

/** Maximum length of a stop sequence, in characters (code points, as JSON Schema counts). */
const MAX_STOP_LENGTH = 1024;
const STOP_LENGTH = { minLength: 1, maxLength: MAX_STOP_LENGTH };
const STOP_WORDS = `a string of 1 to ${MAX_STOP_LENGTH} characters`;

export const STOP_SEQUENCE = Type.String({ ...STOP_LENGTH, description: STOP_WORDS });
export const stop = nullable(
  Type.Union([Type.String(STOP_LENGTH), Type.Array(STOP_SEQUENCE, { maxItems: 4 })]),
  `${STOP_WORDS}, or an array of up to 4 of them`,
);

/** The distinct stop sequences of a request. */
export function stopOf(given: string | readonly string[] | null | undefined): readonly string[] {
  if (typeof given === 'string') return [given];
  return [...new Set(given ?? [])];
}

export const TOKENS = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });
export const tokens = nullable(TOKENS, 'an integer from 1 to 2147483647');
export const model = Type.String({ minLength: 1, maxLength: 256, description: 'a string of 1 to 256 characters' });
export const flag = nullable(Type.Boolean(), 'a boolean');
export const text = nullable(Type.String(), 'a string');
export const object = nullable(Type.Object({}), 'an object');
/** OpenAI's limits of `metadata`, in characters (code points). */
const MAX_METADATA_PAIRS = 16;
const MAX_METADATA_NAME = 64;
const MAX_METADATA_VALUE = 512;
export const metadata = nullable(
  Type.Record(Type.String({ pattern: `^[\\s\\S]{1,${MAX_METADATA_NAME}}$` }), Type.String({ maxLength: MAX_METADATA_VALUE }), {
    maxProperties: MAX_METADATA_PAIRS,
    additionalProperties: false,
  }),
  `an object of up to ${MAX_METADATA_PAIRS} strings of up to ${MAX_METADATA_VALUE} characters, with names of up to ${MAX_METADATA_NAME} characters`,
);
export const list = nullable(Type.Array(Type.Unknown()), 'an array');
export const anything = Type.Optional(Type.Unknown());
/** Serial number of the only provider that may serve the request. */
export const provider_serial = nullable(Type.String({ minLength: 1, maxLength: 128 }), 'a string of 1 to 128 characters');
/** Number of alternative tokens with log probabilities, per token. */
export const top_logprobs = nullable(Type.Integer({ minimum: 0, maximum: 20 }), 'an integer from 0 to 20');

/** JSON Schema of a tool or a response format. */
export const JSON_SCHEMA = Type.Record(Type.String(), Type.Unknown(), { description: 'a JSON Schema object' });
/** Name in a tool call or choice. Freer than in a definition, because models misspell names and clients send such calls back. */
export const TOOL_NAME = Type.String({ minLength: 1, maxLength: 256, description: 'a string of 1 to 256 characters' });
/** Schema options for the name in a tool definition. */
export const newToolName = (maxLength: number) => ({
  pattern: `^[a-zA-Z0-9_-]{1,${maxLength}}$`,
  description: `a string of 1 to ${maxLength} letters (a-z, A-Z), digits, underscores and dashes`,
});
