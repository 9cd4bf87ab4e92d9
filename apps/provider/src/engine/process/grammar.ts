/** Makes the sampling of a stream keep to a grammar. */
import { type Llama, LlamaGrammarEvaluationState, type LlamaModel } from 'node-llama-cpp';
import type { OutputGrammar } from '../messages.js';

/** The grammar could not be made; its reason may quote the schema and is therefore not kept. */
export class GrammarError extends Error {
  constructor() {
    super('the grammar could not be made');
    this.name = 'GrammarError';
  }
}

/** The library ends its grammars with blank lines that it stops at; here the model ends by itself. */
const BLANK_END = / "\\n\\n\\n\\n" \[\\n\]\*$/;

/** The library lets integers have exponents, and so fractions: 1e-5. */
const INTEGER = '"-"? ("0" | [1-9] [0-9]{0,15})';
const EXPONENT = ' ([eE] [-+]? ("0" | [1-9] [0-9]{0,15}))?';

/** State for one stream. Throws {@link GrammarError}. */
export async function grammarState(model: LlamaModel, { before, schema, after }: OutputGrammar): Promise<LlamaGrammarEvaluationState> {
  try {
    const { llama } = model;
    const [root = '', ...rules] = (await jsonGrammar(llama, schema)).split('\n');
    const value = root.replace(/^root ::= /, '').replace(BLANK_END, '');
    const grammar = [`root ::= ${literal(before)} (${value}) ${literal(after)}`, ...rules].join('\n');
    return new LlamaGrammarEvaluationState({ model, grammar: await llama.createGrammar({ grammar }) });
  } catch {
    throw new GrammarError();
  }
}

async function jsonGrammar(llama: Llama, schema: OutputGrammar['schema']): Promise<string> {
  const { grammar } = await llama.createGrammarForJsonSchema(schema as Parameters<Llama['createGrammarForJsonSchema']>[0]);
  return grammar.replaceAll(INTEGER + EXPONENT, INTEGER);
}

/** The texts hold no control characters but line feeds. */
function literal(text: string): string {
  return text === '' ? '' : JSON.stringify(text);
}
