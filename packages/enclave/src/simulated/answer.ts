/** `answer` handles one request line: parses, validates, executes, and formats the reply. Never throws. */
import { lazyValidator } from '@inference/protocol';
import type { TSchema } from 'typebox';
import type { HelperErrorCode } from '../contract/errors.js';
import type { Line } from '../contract/line-splitter.js';
import { MAX_LINE_BYTES, type Operation, ParameterSchemas, RequestIdSchema } from '../contract/requests.js';
import type { Operations } from './operations.js';
import { Refusal } from './refusal.js';

const idValidator = lazyValidator(RequestIdSchema);
const parameterValidators = new Map(Object.entries(ParameterSchemas).map(([op, schema]) => [op, lazyValidator<TSchema>(schema)] as const));

/** Reply line without line feed. `id` is null if unreadable. */
export function answer(line: Line, operations: Operations): string {
  let id: number | null = null;
  try {
    const request = readObject(line);
    if (!idValidator().Check(request.id)) throw new Refusal('bad_request', 'id is not a whole number');
    id = request.id;
    const { id: _, op, ...parameters } = request;
    return JSON.stringify({ id, ok: true, ...performOperation(op, parameters, operations) });
  } catch (error) {
    return JSON.stringify({ id, ok: false, error: errorOf(error) });
  }
}

function performOperation(op: unknown, parameters: object, operations: Operations): object {
  if (typeof op !== 'string') throw new Refusal('bad_request', 'op is not a string');
  const validator = parameterValidators.get(op)?.();
  if (validator === undefined) throw new Refusal('unknown_op', 'there is no such operation');
  if (!validator.Check(parameters)) {
    const [first] = validator.Errors(parameters);
    throw new Refusal('bad_request', `${op}${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`.slice(0, 256));
  }
  return (operations[op as Operation] as (checked: object) => object)(parameters);
}

function readObject(line: Line): Record<string, unknown> {
  if (line.kind === 'too_long') throw new Refusal('bad_request', `the line is over ${MAX_LINE_BYTES} bytes`);
  if (line.kind === 'not_text') throw new Refusal('bad_request', 'the line is not UTF-8');
  let value: unknown;
  try {
    value = JSON.parse(line.text);
  } catch {
    throw new Refusal('bad_request', 'the line is not JSON');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refusal('bad_request', 'the line is not an object');
  return value as Record<string, unknown>;
}

function errorOf(error: unknown): { code: HelperErrorCode; message: string } {
  if (error instanceof Refusal) return { code: error.code, message: error.message };
  return { code: 'internal', message: error instanceof Error ? error.message.slice(0, 256) : 'unknown' };
}
