/** Content of prompt messages: joins parts, and finds their texts and images. */
import type { ChatMessage, ContentPart, InputImage, MessageContent, TextRequest } from './request.js';

/** Joins neighbouring texts with line feeds. Content without images becomes a single string. */
export function joinedContent(parts: readonly ContentPart[]): MessageContent {
  const joined: ContentPart[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (part.type === 'text' && last?.type === 'text') joined[joined.length - 1] = { type: 'text', text: `${last.text}\n${part.text}` };
    else joined.push(part);
  }
  const [first] = joined;
  if (first === undefined) return '';
  return joined.length === 1 && first.type === 'text' ? first.text : joined;
}

/** The texts of the content, joined with line feeds. Images are left out. */
export function contentText(content: MessageContent): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

/** All images of the messages, in order. */
export function imagesOf(messages: readonly ChatMessage[]): readonly InputImage[] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'image' ? [part.image] : [])),
  );
}

/** All images of a request's prompt, in order. */
export function imagesOfRequest({ prompt }: Pick<TextRequest, 'prompt'>): readonly InputImage[] {
  return prompt.type === 'chat' ? imagesOf(prompt.messages) : [];
}

/** Bytes of a request body without the data of its images: an upper bound of its text. */
export function textBytesOf(request: Pick<TextRequest, 'prompt'>, bodyBytes: number): number {
  const data = imagesOfRequest(request).reduce((sum, { base64, isFetched }) => sum + (isFetched ? 0 : base64.length), 0);
  return bodyBytes - data;
}
