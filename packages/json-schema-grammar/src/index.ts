/**
 * JSON Schema to context-free grammar, for constrained decoding. Pure, except for the time limit of validation (`node:vm`).
 * Public entry points are the compiler, the building blocks of other grammars, and validation of finished values.
 */
export * from './grammar/index.js';
export { JsonGrammar } from './grammar/json-grammar.js';
export { languageOfPattern, PatternError } from './language/pattern-language.js';
export { ANY_CHARACTER, LanguageFactory } from './language/regular-language.js';
export { SchemaCompiler, toSchemaError } from './schema/schema-compiler.js';
export { SchemaError } from './schema/schema-error.js';
export { isValidDocument, schemaValidator } from './validation/validator.js';
