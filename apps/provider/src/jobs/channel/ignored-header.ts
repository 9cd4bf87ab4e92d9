/** `ignoredHeader`: header `X-Inference-Ignored` of an end-to-end answer, a list of request members and tools that had no effect. */
import type { E2eAnswerHead } from '@inference/protocol';

/** Below the limit of a header in an answer's head, 1024 characters. */
const MAX_LENGTH = 1000;

/** No header if every member has an effect. */
export function ignoredHeader(ignored: readonly string[]): Pick<E2eAnswerHead, 'headers'> {
  if (ignored.length === 0) return {};
  let shown = '';
  for (const [index, name] of ignored.entries()) {
    const next = `${shown}${index === 0 ? '' : ', '}${name.replace(/[^\x20-\x7e]/g, '?').trim()}`;
    if (next.length > MAX_LENGTH) return { headers: { 'x-inference-ignored': `${shown}, ...` } };
    shown = next;
  }
  return { headers: { 'x-inference-ignored': shown } };
}
