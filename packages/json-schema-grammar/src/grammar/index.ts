/** Grammars without schemas: data, builder, matcher and GBNF text. Sufficient for the engine process. */
export * from './gbnf.js';
export * from './grammar.js';
export * from './grammar-matcher.js';
