/** `hashPromptPrefixes`: hashes of a prompt's beginnings, by blocks. The next turn of a conversation starts with the same hashes. */
import type { ChatMessage, MessageContent, TextRequest } from './request.js';

interface PrefixBlock {
  /** Hash of the prompt up to here. */
  readonly digest: string;
  /** Length of the prompt up to here. */
  readonly characters: number;
}

/** Characters of a block. Shorter prefixes are not worth matching. */
const BLOCK = 1024;
/** Block sizes grow with the prompt: about this many blocks per doubling. */
const FINENESS = 32;

/**
 * Hashes of a request's prefixes, the shortest first. The last block counts only if complete.
 *
 * @param start Key that every digest depends on.
 */
export function hashPromptPrefixes(request: TextRequest, start: string, hash: (text: string) => string): readonly PrefixBlock[] {
  const text = promptText(request, hash);
  const chain: PrefixBlock[] = [];
  let digest = start;
  let from = 0;
  for (;;) {
    const to = from + BLOCK * Math.max(1, Math.floor(from / (BLOCK * FINENESS)));
    if (to > text.length) return chain;
    digest = hash(`${start}${digest}${text.slice(from, to)}`);
    chain.push({ digest, characters: to });
    from = to;
  }
}

/** Unambiguous text of all prompt inputs, in order. */
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

/** Times that an image's hash is repeated: at 64 characters, an image has the weight of 256 tokens. */
const IMAGE_WEIGHT = 16;

/**
 * Characters hashed at the beginning and at the end of an image's data. Hashing all would take milliseconds per megabyte.
 *
 * Images of one length that differ in between are rare: PNG ends with a checksum, and others are compressed.
 */
const HASHED_CHARACTERS = 32_768;

function imageHash(base64: string, hash: (text: string) => string): string {
  if (base64.length <= 2 * HASHED_CHARACTERS) return hash(base64);
  return hash(`${base64.length} ${base64.slice(0, HASHED_CHARACTERS)}${base64.slice(-HASHED_CHARACTERS)}`);
}

/** Images count by a hash of their data. */
function contentText(content: MessageContent, hash: (text: string) => string): string {
  if (typeof content === 'string') return `${content.length} ${content}`;
  const parts = content.map((part) =>
    part.type === 'text'
      ? `${part.text.length} ${part.text}`
      : `image ${part.image.detail} ${imageHash(part.image.base64, hash).repeat(IMAGE_WEIGHT)}`,
  );
  return parts.join('\n');
}
