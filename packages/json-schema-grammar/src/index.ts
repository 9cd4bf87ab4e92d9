/** JSON Schema to context-free grammar, for constrained decoding, and validation of finished values. Pure, except for `node:vm`. */
export * from './grammar/index.js';
export { JsonGrammar } from './grammar/json-grammar.js';
export { languageOfPattern, PatternError } from './language/pattern-language.js';
export { ANY_CHARACTER, LanguageFactory } from './language/regular-language.js';
export { SchemaCompiler, toSchemaError } from './schema/schema-compiler.js';
export { SchemaError } from './schema/schema-error.js';
export { isValidDocument, schemaValidator } from './validation/validator.js';
