/** Validators that are compiled at first use, because compiling all schemas of a program takes a tenth of its start. */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

/** Returns a function that compiles the schema at the first call and returns the same validator ever after. */
export function lazyValidator<Schema extends TSchema>(schema: Schema): () => ReturnType<typeof Compile<Schema>> {
  let validator: ReturnType<typeof Compile<Schema>> | undefined;
  return () => {
    validator ??= Compile(schema);
    return validator;
  };
}
