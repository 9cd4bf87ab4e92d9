/** Checks the receipt's token counts: consistent with each other, equal to counts in the answer, and possible for its bytes. */
import { agreesWithReceipt, MAX_IMAGE_TOKENS, promptTokenBound, type Receipt, UsageReader, visibleTokenBound } from '@inference/protocol';
import { type Check, check } from './checks.js';

export interface SignedAnswer {
  readonly bytes: Uint8Array;
  readonly stream: boolean;
}

/** Size of the request, as far as the client knows it. */
export interface RequestSize {
  /** Length of the body. */
  readonly requestBytes?: number;
  /** Upper bound of the images in the prompt. Default: none. */
  readonly requestImages?: number;
}

/** The failed check; null if the counts are right. */
export function usageCheck(receipt: Receipt, answer: SignedAnswer, request: RequestSize): Check | null {
  const problem = usageProblem(receipt, answer, request);
  return problem === null ? null : check('receipt_usage', false, '', problem);
}

function usageProblem(receipt: Receipt, { bytes, stream }: SignedAnswer, { requestBytes, requestImages = 0 }: RequestSize): string | null {
  const { usage, hidden_tokens, endpoint } = receipt;
  const { prompt_tokens, completion_tokens, total_tokens, cached_tokens = 0 } = usage;
  if (total_tokens !== prompt_tokens + completion_tokens || hidden_tokens > completion_tokens || cached_tokens > prompt_tokens) {
    return "The receipt's counts do not add up.";
  }
  const reader = new UsageReader(endpoint, stream);
  reader.push(bytes);
  if (!agreesWithReceipt(reader.end(), receipt)) return 'The receipt counts other tokens than the answer reports.';
  if (completion_tokens - hidden_tokens > visibleTokenBound(bytes.length))
    return 'The receipt counts more tokens than the answer can hold.';
  const isTooMany = requestBytes !== undefined && prompt_tokens > promptTokenBound(requestBytes, requestImages * MAX_IMAGE_TOKENS);
  return isTooMany ? 'The receipt counts more tokens of the prompt than the request can hold.' : null;
}
