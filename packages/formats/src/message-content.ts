/** Functions on message content: joining parts, extracting texts and images, inserting fetched images. */
import type { ImageUrlResolver } from './input-images/image-reader.js';
import type { ChatMessage, ContentPart, InputImage, MessageContent, TextRequest } from './request.js';

/** Joins adjacent text parts with line feeds. Content without images becomes a single string. */
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

/** The text of the content, without images. Text parts are joined with line feeds. */
export function contentText(content: MessageContent): string {
  if (typeof content === 'string') return content;
  return content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
}

export function imagesOf(messages: readonly ChatMessage[]): readonly InputImage[] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'image' ? [part.image] : [])),
  );
}

export function imagesOfRequest({ prompt }: Pick<TextRequest, 'prompt'>): readonly InputImage[] {
  return prompt.type === 'chat' ? imagesOf(prompt.messages) : [];
}

/** Copy of the request in which images at URLs have their fetched data. */
export function withFetchedImages(request: TextRequest, imageAt: ImageUrlResolver): TextRequest {
  const { prompt } = request;
  if (prompt.type !== 'chat') return request;
  const messages = prompt.messages.map((message): ChatMessage => {
    if ((message.role !== 'user' && message.role !== 'tool') || typeof message.content === 'string') return message;
    return { ...message, content: message.content.map((part) => fetchedPart(part, imageAt)) };
  });
  return { ...request, prompt: { ...prompt, messages } };
}

function fetchedPart(part: ContentPart, imageAt: ImageUrlResolver): ContentPart {
  if (part.type !== 'image' || part.image.url === undefined) return part;
  const { url, field } = part.image;
  return { type: 'image', image: { ...part.image, ...imageAt(url, field) } };
}

/** Size of a request body without the base64 data of images. Upper bound for the size of its text. */
export function textBytesOf(request: Pick<TextRequest, 'prompt'>, bodyBytes: number): number {
  const data = imagesOfRequest(request).reduce((sum, { base64, url }) => sum + (url === undefined ? base64.length : 0), 0);
  return bodyBytes - data;
}
