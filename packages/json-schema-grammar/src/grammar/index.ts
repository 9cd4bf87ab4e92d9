/** Grammars without schemas: data, construction, matching and GBNF text. All that the engine process needs. */
export * from './gbnf.js';
export * from './grammar.js';
export * from './grammar-matcher.js';
