/** Schema validators that are compiled at first use. Compiling all schemas at startup would take a tenth of the startup time. */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** Returns a function that compiles the schema at its first call, and always returns the same validator. */
export function lazyValidator<Schema extends TSchema>(schema: Schema): () => ReturnType<typeof Compile<Schema>> {
  let validator: ReturnType<typeof Compile<Schema>> | undefined;
  return () => {
    validator ??= Compile(schema);
    return validator;
  };
}
