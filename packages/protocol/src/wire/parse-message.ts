/** Parses and validates control messages (JSON text frames). An unknown `type` is not an error: receivers ignore such messages. */
import type { Static, TSchema } from 'typebox';
import type { TLocalizedValidationError } from 'typebox/error';
import { lazyValidator } from '../lazy-validator.js';
import { type CoordinatorMessage, CoordinatorMessageSchemas } from './coordinator-messages.js';
import { MAX_TEXT_FRAME_BYTES } from './limits.js';
import { type ProviderMessage, ProviderMessageSchemas } from './provider-messages.js';

export type Parsed<Message> = { readonly kind: 'message'; readonly message: Message } | { readonly kind: 'unknown_type' } | InvalidMessage;

interface InvalidMessage {
  readonly kind: 'invalid';
  readonly code: 'bad_message' | 'too_large';
  readonly reason: string;
  /** First invalid field, such as `hello.agent.version` or `models.models[].id`; null without a known type. Names of the schema only. */
  readonly field: string | null;
}

/** Parses a text frame from a provider. Never throws. */
export const parseProviderMessage = messageParser<ProviderMessage>(ProviderMessageSchemas);

/** Parses a text frame from a coordinator. Never throws. */
export const parseCoordinatorMessage = messageParser<CoordinatorMessage>(CoordinatorMessageSchemas);

function messageParser<Message extends { type: string }>(schemas: Readonly<Record<string, TSchema>>): (text: string) => Parsed<Message> {
  const validators = new Map(Object.entries(schemas).map(([type, schema]) => [type, lazyValidator(schema)]));
  return (text) => {
    if (text.length > MAX_TEXT_FRAME_BYTES)
      return invalid('too_large', `message of ${text.length} characters is over the cap of ${MAX_TEXT_FRAME_BYTES}`);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return invalid('bad_message', 'the message is not JSON');
    }
    const type = typeOf(value);
    if (type === null) return invalid('bad_message', 'the message has no "type"');
    const validator = validators.get(type)?.();
    if (validator === undefined) return { kind: 'unknown_type' };
    if (!validator.Check(value)) {
      const [first] = validator.Errors(value);
      const reason = `${type}${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`;
      return invalid('bad_message', reason, type + (first === undefined ? '' : fieldOf(first)));
    }
    return { kind: 'message', message: value as Static<TSchema> as Message };
  };
}

function typeOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || !('type' in value)) return null;
  return typeof value.type === 'string' ? value.type : null;
}

/** Path of an invalid field, from the path of its schema, because the path in the message could repeat text of the sender. */
function fieldOf({ keyword, schemaPath, params }: TLocalizedValidationError): string {
  const tokens = schemaPath.split('/').slice(1);
  let path = '';
  for (let index = 0; index < tokens.length; index++) {
    if (tokens[index] === 'properties') path += `.${tokens[++index]}`;
    else if (tokens[index] === 'items') path += '[]';
  }
  return keyword === 'required' ? `${path}.${params.requiredProperties[0]}` : path;
}

function invalid(code: InvalidMessage['code'], reason: string, field: string | null = null): InvalidMessage {
  return { kind: 'invalid', code, reason, field };
}
