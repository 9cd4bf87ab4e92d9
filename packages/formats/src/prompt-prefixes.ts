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
  if (prompt.type === 'text') return `text ${prompt.text}`;
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

/** Images count by the hash of their data. */
function contentText(content: MessageContent, hash: (text: string) => string): string {
  if (typeof content === 'string') return `${content.length} ${content}`;
  const parts = content.map((part) =>
    part.type === 'text'
      ? `${part.text.length} ${part.text}`
      : `image ${part.image.detail} ${hash(part.image.base64).repeat(IMAGE_WEIGHT)}`,
  );
  return parts.join('\n');
}
