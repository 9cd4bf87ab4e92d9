/** `jsonReader` returns a parser for a schema. The parser returns null for input that does not match or is not valid UTF-8. */
import { fromUtf8 } from '@inference/protocol';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

export function jsonReader<Schema extends TSchema>(schema: Schema): (json: string | Uint8Array) => Static<Schema> | null {
  const validator = Compile(schema);
  return (json) => {
    try {
      const value: unknown = JSON.parse(typeof json === 'string' ? json : fromUtf8(json));
      return validator.Check(value) ? (value as Static<Schema>) : null;
    } catch {
      return null;
    }
  };
}
