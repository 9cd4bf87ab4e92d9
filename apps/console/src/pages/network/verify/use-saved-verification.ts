/** `useSavedVerification`: runs the verification of a saved response or receipt, and returns its state. Results of earlier runs are discarded. */
import type { AttestationFeed } from '@inference/protocol';
import { useRef, useState } from 'react';
import type { AnswerReportProps } from '../../../features/trust/answer-report.js';
import { downloadFeed } from '../queries.js';
import { InputError, type VerifyInput } from './read-input.js';

export type SavedVerification =
  | { readonly state: 'idle' }
  | { readonly state: 'running' }
  | { readonly state: 'failed'; readonly error: unknown }
  | { readonly state: 'done'; readonly report: AnswerReportProps };

export interface SavedInput {
  readonly input: Exclude<VerifyInput, { readonly kind: 'record' }>;
  /** Request body, empty if unknown. */
  readonly request: string;
  readonly isPasted: boolean;
}

interface SavedControl {
  readonly saved: SavedVerification;
  readonly verify: (input: SavedInput) => Promise<void>;
  readonly clear: () => void;
}

export function useSavedVerification(): SavedControl {
  const [saved, setSaved] = useState<SavedVerification>({ state: 'idle' });
  const newest = useRef(0);
  const show = (run: number, next: SavedVerification): void => {
    if (run === newest.current) setSaved(next);
  };
  const verify = async (input: SavedInput): Promise<void> => {
    newest.current += 1;
    const run = newest.current;
    show(run, { state: 'running' });
    try {
      show(run, { state: 'done', report: await reportOn(input) });
    } catch (error) {
      show(run, { state: 'failed', error });
    }
  };
  const clear = (): void => {
    newest.current += 1;
    setSaved({ state: 'idle' });
  };
  return { saved, verify, clear };
}

/** Loads the verifier on first use, because the cryptographic code is large. */
async function reportOn({ input, request, isPasted }: SavedInput): Promise<AnswerReportProps> {
  const [{ evaluateSavedAnswer, evaluateSavedReceipt }, verifier] = await Promise.all([
    import('./evaluate-saved.js'),
    import('@inference/verifier'),
  ]);
  if (input.kind === 'answer') {
    const { answer } = input;
    const feed = await downloadFeedOf(answer.headers.get('x-provider-id') ?? '', 'The header X-Provider-Id');
    return evaluateSavedAnswer({ answer, request, isPasted, feed }, Date.now());
  }
  try {
    const receipt = verifier.readSavedReceipt(input.value);
    const feed = await downloadFeedOf(verifier.providerNamedBy(receipt), 'The provider_id in the receipt');
    return evaluateSavedReceipt({ saved: receipt, request, feed }, Date.now());
  } catch (error) {
    if (error instanceof verifier.ReceiptError) throw new InputError(error.message);
    throw error;
  }
}

const PROVIDER_ID = /^[0-9a-f]{32}$/;

/** Downloads the feed with the record of one provider. `source`: origin of the id, for the error message. */
function downloadFeedOf(providerId: string, source: string): Promise<AttestationFeed> {
  if (!PROVIDER_ID.test(providerId)) throw new InputError(`${source} is no provider ID, which has 32 hexadecimal digits.`);
  return downloadFeed(providerId);
}
