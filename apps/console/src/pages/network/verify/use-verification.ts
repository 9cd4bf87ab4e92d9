/** `useVerification`: runs the verification of attestation records, and returns the findings so far and the result. */
import type { AttestationRecord } from '@inference/protocol';
import type { RecordVerdict, StageVerdict } from '@inference/verifier';
import { useRef, useState } from 'react';
import { type AsOf, type VerificationAnchor, verifyInBrowser } from './run-verification.js';

export interface RecordProgress {
  readonly record: AttestationRecord;
  /** Trust anchor of the certificates. */
  readonly anchor: VerificationAnchor['kind'];
  readonly stages: readonly StageVerdict[];
  /** Null until all stages are done. */
  readonly verdict: RecordVerdict | null;
}

export type Verification =
  | { readonly state: 'idle' }
  /** The records are being downloaded or parsed. */
  | { readonly state: 'opening' }
  | { readonly state: 'failed'; readonly error: unknown }
  | {
      readonly state: 'running' | 'done';
      readonly anchor: VerificationAnchor;
      readonly records: readonly RecordProgress[];
      /** Number of records in the input, of which `records` has at most the first 100. */
      readonly total: number;
    };

interface VerificationControl {
  readonly verification: Verification;
  /** Starts a verification of the value that `obtain` resolves to. Results of earlier runs are discarded. */
  readonly start: (obtain: () => Promise<unknown>, asOf?: AsOf) => Promise<void>;
  readonly clear: () => void;
}

export function useVerification(): VerificationControl {
  const [verification, setVerification] = useState<Verification>({ state: 'idle' });
  const newest = useRef(0);
  const start = async (obtain: () => Promise<unknown>, asOf: AsOf = 'now'): Promise<void> => {
    newest.current += 1;
    const run = newest.current;
    const show = (next: Verification): void => {
      if (run === newest.current) setVerification(next);
    };
    show({ state: 'opening' });
    try {
      await follow(await obtain(), asOf, show);
    } catch (error) {
      show({ state: 'failed', error });
    }
  };
  const clear = (): void => {
    newest.current += 1;
    setVerification({ state: 'idle' });
  };
  return { verification, start, clear };
}

async function follow(downloaded: unknown, asOf: AsOf, show: (next: Verification) => void): Promise<void> {
  let anchor: VerificationAnchor = { kind: 'apple', name: '' };
  let total = 0;
  const records: RecordProgress[] = [];
  for await (const step of verifyInBrowser(downloaded, asOf)) {
    switch (step.type) {
      case 'opened':
        ({ anchor, total } = step);
        records.push(...step.records.map((record) => ({ record, anchor: step.anchor.kind, stages: [], verdict: null })));
        break;
      case 'stage':
        change(records, step.record, (one) => ({ ...one, stages: [...one.stages, step.verdict] }));
        break;
      case 'verdict':
        change(records, step.record, (one) => ({ ...one, verdict: step.verdict }));
        break;
    }
    show({ state: 'running', anchor, total, records: [...records] });
  }
  show({ state: 'done', anchor, total, records });
}

function change(records: RecordProgress[], record: AttestationRecord, to: (before: RecordProgress) => RecordProgress): void {
  const index = records.findIndex((one) => one.record === record);
  const before = records[index];
  if (before !== undefined) records[index] = to(before);
}
