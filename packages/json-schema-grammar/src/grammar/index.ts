/** Grammar data, builder, matcher and GBNF. The engine process imports only this part, without the schema compiler. */
export * from './gbnf.js';
export * from './grammar.js';
export * from './grammar-matcher.js';
