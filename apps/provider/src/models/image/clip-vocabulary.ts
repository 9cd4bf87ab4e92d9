/**
 * `readClipVocabulary` reads the vocabulary of a CLIP tokenizer from the `tokenizer` folder of an image model: from `vocab.json` and
 * `merges.txt`, or from `tokenizer.json`.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { ModelFileError } from '../gguf-header.js';
import { hasFile, readJson, readText } from './folder-file.js';

export interface ClipVocabulary {
  /** Token id by text. */
  readonly ids: ReadonlyMap<string, number>;
  /** Pairs of texts to merge, the first with priority, each `left right`. */
  readonly merges: readonly string[];
  readonly begin: number;
  readonly end: number;
  readonly padding: number;
  /** Tokens that the text encoder reads, begin and end token included. */
  readonly length: number;
}

const IdsSchema = Type.Record(Type.String(), Type.Integer({ minimum: 0, maximum: 2_147_483_647 }));
const SpecialSchema = Type.Union([Type.String(), Type.Object({ content: Type.String() }), Type.Null()]);
const ConfigSchema = Type.Object({
  model_max_length: Type.Optional(Type.Number({ minimum: 2 })),
  bos_token: Type.Optional(SpecialSchema),
  eos_token: Type.Optional(SpecialSchema),
  pad_token: Type.Optional(SpecialSchema),
});
const TokenizerSchema = Type.Object({
  model: Type.Object({
    type: Type.Literal('BPE'),
    end_of_word_suffix: Type.Literal('</w>'),
    vocab: IdsSchema,
    merges: Type.Array(Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 2, maxItems: 2 })])),
  }),
});

const DEFAULT_LENGTH = 77;
/** Longer lengths are ignored: some tokenizers state a huge number for "no limit". */
const MAX_LENGTH = 512;

/** Throws {@link ModelFileError}. */
export function readClipVocabulary(folder: string): ClipVocabulary {
  const configFile = join(folder, 'tokenizer_config.json');
  const config = hasFile(configFile) ? readJson(configFile, ConfigSchema) : {};
  const { ids, merges } = readWords(folder);
  const special = (given: string | { content: string } | null | undefined, usual: string): number => {
    const word = typeof given === 'object' ? (given?.content ?? usual) : (given ?? usual);
    const id = ids.get(word);
    if (id === undefined) throw new ModelFileError(`the vocabulary in ${folder} lacks the token ${JSON.stringify(word.slice(0, 64))}`);
    return id;
  };
  const length = config.model_max_length ?? DEFAULT_LENGTH;
  const end = '<|endoftext|>';
  return {
    ids,
    merges,
    begin: special(config.bos_token, '<|startoftext|>'),
    end: special(config.eos_token, end),
    padding: special(config.pad_token, end),
    length: Number.isInteger(length) && length <= MAX_LENGTH ? length : DEFAULT_LENGTH,
  };
}

function readWords(folder: string): { readonly ids: ReadonlyMap<string, number>; readonly merges: readonly string[] } {
  const vocabulary = join(folder, 'vocab.json');
  if (hasFile(vocabulary)) {
    const merges = readText(join(folder, 'merges.txt'))
      .split(/\r?\n/)
      .filter((line) => line.includes(' ') && !line.startsWith('#version'));
    return { ids: new Map(Object.entries(readJson(vocabulary, IdsSchema))), merges };
  }
  const tokenizer = join(folder, 'tokenizer.json');
  if (!hasFile(tokenizer)) throw new ModelFileError(`the model needs the file ${vocabulary}, which is missing`);
  const { model } = readJson(tokenizer, TokenizerSchema);
  return {
    ids: new Map(Object.entries(model.vocab)),
    merges: model.merges.map((pair) => (typeof pair === 'string' ? pair : pair.join(' '))),
  };
}
