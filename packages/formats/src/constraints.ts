/**
 * Structured output parameters of vLLM, llama.cpp, SGLang, TGI and Ollama, in addition to OpenAI's `response_format`.
 *
 * Schemas from these parameters are treated as strict, because those servers enforce schemas.
 */
import Type, { type Static, type TObject } from 'typebox';
import { isPresent, rejectInvalid } from './errors/reject.js';
import { flag, JSON_SCHEMA, nullable } from './fields.js';
import { isJsonObject, parsedJson } from './json/json-value.js';
import type { ResponseFormat } from './request.js';

/** Maximum texts of `guided_choice` and `choice`. */
const MAX_CHOICE_TEXTS = 1000;
const MAX_TEXT_LENGTH = 1024;

const schemaOrText = nullable(Type.Union([JSON_SCHEMA, Type.String()]), 'a JSON Schema object, or its JSON text');
const regex = nullable(
  Type.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH }),
  `a regular expression of 1 to ${MAX_TEXT_LENGTH} characters`,
);
const choice = nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: MAX_TEXT_LENGTH }), { minItems: 1, maxItems: MAX_CHOICE_TEXTS }),
  `an array of 1 to ${MAX_CHOICE_TEXTS} texts of 1 to ${MAX_TEXT_LENGTH} characters`,
);

export const StructuredOutputsSchema = Type.Object({ json: schemaOrText, regex, choice, json_object: flag });

/** Members of chat and legacy completion requests, beside `response_format`. */
export const CONSTRAINTS = {
  guided_json: schemaOrText,
  guided_regex: regex,
  guided_choice: choice,
  structured_outputs: nullable(StructuredOutputsSchema, 'an object with json, regex, choice or json_object'),
  json_schema: schemaOrText,
  regex,
  format: nullable(Type.Union([Type.Literal('json'), Type.Literal(''), JSON_SCHEMA]), '"json" or a JSON Schema object'),
};

type Nullable<Schema> = Schema | null | undefined;

/** The requested output format. Throws RequestError if the request has more than one. */
export function requestedFormat(body: Static<TObject<typeof CONSTRAINTS>>, responseFormat: ResponseFormat): ResponseFormat {
  const { structured_outputs: structured } = body;
  const forms = [
    schemaForm(body.guided_json, 'guided_json'),
    regexForm(body.guided_regex, 'guided_regex'),
    choiceForm(body.guided_choice, 'guided_choice'),
    schemaForm(structured?.json, 'structured_outputs.json'),
    regexForm(structured?.regex, 'structured_outputs.regex'),
    choiceForm(structured?.choice, 'structured_outputs.choice'),
    structured?.json_object === true ? ANY_OBJECT : null,
    schemaForm(body.json_schema, 'json_schema'),
    regexForm(body.regex, 'regex'),
    body.format === 'json' ? ANY_OBJECT : schemaForm(body.format === '' ? null : body.format, 'format'),
  ].filter((form) => form !== null);
  const [form, other] = forms;
  if (form === undefined) return responseFormat;
  if (other !== undefined || responseFormat.type !== 'text') {
    const fields = [form, other].flatMap((each) => (each !== undefined && 'field' in each ? [each.field] : []));
    rejectInvalid(fields[0] ?? 'response_format', 'The request asks for more than one form of the answer. Give only one.');
  }
  return form;
}

const ANY_OBJECT: ResponseFormat = { type: 'json_object' };

/** Response format for a schema, which is an object or JSON text; null if absent. */
export function schemaForm(given: unknown, field: string): ResponseFormat | null {
  if (!isPresent(given) || given === '') return null;
  const schema = typeof given === 'string' ? parsedJson(given) : given;
  if (!isJsonObject(schema)) return rejectInvalid(field, `${field} must be a JSON Schema object, or its JSON text.`);
  return { type: 'json_schema', name: 'output', schema, strict: true, field };
}

function regexForm(pattern: Nullable<string>, field: string): ResponseFormat | null {
  return isPresent(pattern) ? { type: 'regex', pattern, field } : null;
}

function choiceForm(choices: Nullable<readonly string[]>, field: string): ResponseFormat | null {
  return isPresent(choices) ? { type: 'choice', choices: [...new Set(choices)], field } : null;
}

/** Member table entries that refuse {@link CONSTRAINTS} and `response_format`, for formats with a parameter of their own. */
export function refuseConstraints(advice: string) {
  return Object.fromEntries(Object.keys({ ...CONSTRAINTS, response_format: null }).map((name) => [name, { advice }]));
}
