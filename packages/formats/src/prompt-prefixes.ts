/**
 * `hashPromptPrefixes` hashes the prefixes of a prompt, in whole blocks.
 *
 * The next turn of a conversation starts with the same hashes. By them the coordinator finds providers that probably cache the prefix.
 */
import type { ChatMessage, MessageContent, TextRequest } from './request.js';

interface PrefixBlock {
  /** Hash of the prompt up to the end of this block. */
  readonly digest: string;
  /** Length of the prompt up to the end of this block. */
  readonly characters: number;
}

/** Minimum characters of a block. Shorter prefixes are not worth matching. */
const MIN_BLOCK_CHARACTERS = 1024;
/** Block sizes grow with the prompt, so that each doubling of its length has about this many blocks. */
const BLOCKS_PER_DOUBLING = 32;

/**
 * Hashes of a prompt's prefixes, the shortest first. An incomplete last block is left out.
 *
 * @param key Part of every hash, so that equal prompts under different keys have different hashes.
 */
export function hashPromptPrefixes(request: TextRequest, key: string, hash: (text: string) => string): readonly PrefixBlock[] {
  const text = promptText(request, hash);
  const chain: PrefixBlock[] = [];
  let digest = key;
  let blockStart = 0;
  for (;;) {
    const blockUnits = Math.max(1, Math.floor(blockStart / (MIN_BLOCK_CHARACTERS * BLOCKS_PER_DOUBLING)));
    const blockEnd = blockStart + MIN_BLOCK_CHARACTERS * blockUnits;
    if (blockEnd > text.length) return chain;
    digest = hash(`${key}${digest}${text.slice(blockStart, blockEnd)}`);
    chain.push({ digest, characters: blockEnd });
    blockStart = blockEnd;
  }
}

/** Text of all inputs of the prompt, in order. */
function promptText({ prompt, tools, thinking }: TextRequest, hash: (text: string) => string): string {
  if (prompt.type === 'text') return prompt.suffix === undefined ? `text ${prompt.text}` : `infill ${prompt.text}${prompt.suffix}`;
  const head = `chat ${thinking} ${tools.length === 0 ? '' : JSON.stringify(tools)}`;
  return prompt.messages.reduce((text, message) => text + messageText(message, hash), head);
}

function messageText(message: ChatMessage, hash: (text: string) => string): string {
  const text = `\n${message.role} ${contentText(message.content, hash)}`;
  switch (message.role) {
    case 'system':
    case 'user':
      return text;
    case 'assistant':
      return message.toolCalls.length === 0 ? text : `${text}${JSON.stringify(message.toolCalls)}`;
    case 'tool':
      return `${text}${message.name}`;
  }
}

/** Repetitions of an image's hash in the text. 16 hashes of 64 characters count like some 256 tokens. */
const IMAGE_HASH_REPETITIONS = 16;

/**
 * Number of base64 characters that are hashed at each end of an image. Hashing everything would take milliseconds per megabyte.
 *
 * Different images of equal length rarely agree at both ends: the data is compressed, and PNG ends with a checksum.
 */
const HASHED_CHARACTERS = 32_768;

function imageHash(base64: string, hash: (text: string) => string): string {
  if (base64.length <= 2 * HASHED_CHARACTERS) return hash(base64);
  return hash(`${base64.length} ${base64.slice(0, HASHED_CHARACTERS)}${base64.slice(-HASHED_CHARACTERS)}`);
}

/** Text of message content, with hashes instead of images. */
function contentText(content: MessageContent, hash: (text: string) => string): string {
  if (typeof content === 'string') return `${content.length} ${content}`;
  const parts = content.map((part) =>
    part.type === 'text'
      ? `${part.text.length} ${part.text}`
      : `image ${part.image.detail} ${imageHash(part.image.base64, hash).repeat(IMAGE_HASH_REPETITIONS)}`,
  );
  return parts.join('\n');
}
