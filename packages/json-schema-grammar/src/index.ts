/**
 * Compiles a JSON Schema to a context-free grammar for constrained decoding, and validates finished values.
 *
 * Pure, except that validation uses `node:vm` for a time limit.
 */
export * from './grammar/index.js';
export { JsonGrammar } from './grammar/json-grammar.js';
export { checkPattern, languageOfPattern, PatternError } from './language/pattern-language.js';
export { ANY_CHARACTER, LanguageFactory } from './language/regular-language.js';
export { SchemaCompiler, toSchemaError } from './schema/schema-compiler.js';
export { SchemaError } from './schema/schema-error.js';
export { isValidDocument, schemaValidator } from './validation/validator.js';
