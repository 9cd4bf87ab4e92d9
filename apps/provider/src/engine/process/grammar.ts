/** Makes the sampling of a stream keep to a grammar. */

import { type Grammar, gbnf } from '@inference/json-schema-grammar/grammar';
import { LlamaGrammarEvaluationState, type LlamaModel } from 'node-llama-cpp';

/** The grammar could not be made; its reason may quote the schema and is therefore not kept. */
export class GrammarError extends Error {
  constructor() {
    super('the grammar could not be made');
    this.name = 'GrammarError';
  }
}

/** State for one stream. Throws {@link GrammarError}. */
export async function grammarState(model: LlamaModel, grammar: Grammar): Promise<LlamaGrammarEvaluationState> {
  try {
    return new LlamaGrammarEvaluationState({ model, grammar: await model.llama.createGrammar({ grammar: gbnf(grammar) }) });
  } catch {
    throw new GrammarError();
  }
}
