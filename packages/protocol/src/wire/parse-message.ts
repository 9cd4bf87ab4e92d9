/** Parses and validates control messages (JSON text frames). An unknown `type` is not an error: receivers ignore such messages. */
import type { Static, TSchema } from 'typebox';
import { lazyValidator } from '../lazy-validator.js';
import { type CoordinatorMessage, CoordinatorMessageSchemas } from './coordinator-messages.js';
import { MAX_TEXT_FRAME_BYTES } from './limits.js';
import { type ProviderMessage, ProviderMessageSchemas } from './provider-messages.js';

export type Parsed<Message> =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'unknown_type' }
  | { readonly kind: 'invalid'; readonly code: 'bad_message' | 'too_large'; readonly reason: string };

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
      return invalid('bad_message', `${type}${first?.instancePath ?? ''} ${first?.message ?? 'is not valid'}`);
    }
    return { kind: 'message', message: value as Static<TSchema> as Message };
  };
}

function typeOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || !('type' in value)) return null;
  return typeof value.type === 'string' ? value.type : null;
}

function invalid(
  code: 'bad_message' | 'too_large',
  reason: string,
): { kind: 'invalid'; code: 'bad_message' | 'too_large'; reason: string } {
  return { kind: 'invalid', code, reason };
}
