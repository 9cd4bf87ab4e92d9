/** A byte-level BPE vocabulary as GGUF metadata: llama.cpp's `gpt2` tokenizer with the `qwen2` pre-tokenizer. */
import { integer, type MetadataValue, text, truth } from './writer.js';

export interface Vocabulary {
  /** In id order; ordinary tokens in GPT-2's printable letters. */
  tokens: readonly string[];
  merges: readonly (readonly [string, string])[];
}

export const SPECIAL_TOKENS = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<think>',
  '</think>',
  '<tool_call>',
  '</tool_call>',
  '<tools>',
  '</tools>',
  '<tool_response>',
  '</tool_response>',
] as const;

/** llama.cpp's token types. Control tokens end a text or turn and are not printed; user-defined tokens are printed. */
const TOKEN_TYPE = { normal: 1, control: 3, userDefined: 4 } as const;

/** `pre`: llama.cpp's name of the pre-tokenizer. */
export function tokenizerMetadata(vocabulary: Vocabulary, chatTemplate: string, pre = 'qwen2'): Map<string, MetadataValue> {
  const special = new Set<string>(SPECIAL_TOKENS);
  const typeOf = (token: string): number => {
    if (!special.has(token)) return TOKEN_TYPE.normal;
    return token.startsWith('<|') ? TOKEN_TYPE.control : TOKEN_TYPE.userDefined;
  };
  const id = (token: (typeof SPECIAL_TOKENS)[number]): MetadataValue => integer(vocabulary.tokens.indexOf(token));
  return new Map<string, MetadataValue>([
    ['tokenizer.ggml.model', text('gpt2')],
    ['tokenizer.ggml.pre', text(pre)],
    ['tokenizer.ggml.tokens', { type: 'strings', value: vocabulary.tokens }],
    ['tokenizer.ggml.token_type', { type: 'int32s', value: vocabulary.tokens.map(typeOf) }],
    ['tokenizer.ggml.merges', { type: 'strings', value: vocabulary.merges.map((pair) => pair.join(' ')) }],
    ['tokenizer.ggml.bos_token_id', id('<|endoftext|>')],
    ['tokenizer.ggml.eos_token_id', id('<|im_end|>')],
    ['tokenizer.ggml.padding_token_id', id('<|endoftext|>')],
    ['tokenizer.ggml.add_bos_token', truth(false)],
    ['tokenizer.chat_template', text(chatTemplate)],
  ]);
}

/** GPT-2's printable stand-ins for the 256 bytes. */
export function byteLetters(): string[] {
  let extra = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(isPrintable ? byte : extra++);
  });
}

const COMMON_WORDS = 'the and ion ing that you for are with this have from hello world what is name answer please small model'.split(' ');

/** All bytes and some common words: enough to tokenize any text for random-weight models. */
export function plainVocabulary(): Vocabulary {
  const tokens = byteLetters();
  const merges: [string, string][] = [];
  const join = (left: string, right: string): string => {
    if (!tokens.includes(left + right)) {
      merges.push([left, right]);
      tokens.push(left + right);
    }
    return left + right;
  };
  const space = tokens[32] ?? '';
  for (const word of COMMON_WORDS) join(space, [...word].reduce(join));
  return { tokens: [...tokens, ...SPECIAL_TOKENS], merges };
}
