/**
 * The beginnings of a prompt, each hashed with all that comes before it: what two prompts have in common is what their chains have
 * in common. The next turn of a conversation begins with the whole prompt of the one before, so that it goes on with its chain.
 */
import type { ChatMessage, TextRequest } from './request.js';

export interface PrefixBlock {
  /** Hash of the prompt up to here. */
  readonly digest: string;
  /** Length of the prompt up to here. */
  readonly characters: number;
}

/** Characters of a block. Beginnings that are shorter are not worth finding again. */
const BLOCK = 1024;
/** Blocks grow with what comes before them, so that a long prompt has few: this many for each doubling, about. */
const FINENESS = 32;

/**
 * The chain of a request, the shortest beginning first; what follows the last whole block is left out. `start` is what every
 * digest depends on as well (a key), `hash` gives the digest of a text.
 */
export function prefixChain(request: TextRequest, start: string, hash: (text: string) => string): readonly PrefixBlock[] {
  const text = promptText(request);
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

/** All that a prompt is made from, in its order, in a form in which no two different ones are the same. */
function promptText({ prompt, tools, thinking }: TextRequest): string {
  if (prompt.type === 'text') return `text ${prompt.text}`;
  const head = `chat ${thinking} ${tools.length === 0 ? '' : JSON.stringify(tools)}`;
  return prompt.messages.reduce((text, message) => text + messageText(message), head);
}

function messageText(message: ChatMessage): string {
  const text = `\n${message.role} ${message.content.length} ${message.content}`;
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
