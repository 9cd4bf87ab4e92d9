/** Labels, colours and meanings of claim results, trust checks, verification steps and trust levels. */
import type { PartState } from '@inference/protocol';
import type { Tone } from '../../ui/feedback/note.js';

interface Label {
  readonly label: string;
  readonly tone: Tone;
  readonly meaning: string;
}

/** Labels for the result of one claim in an attestation record. Key: `FindingResult` of packages/verifier. */
export const RESULT_LABELS: Readonly<Record<'reproduced' | 'simulated' | 'word' | 'contradicted', Label>> = {
  reproduced: {
    label: 'Reproduced',
    tone: 'good',
    meaning: 'The evidence in the record leads to the same value. The command line of a provider says “holds”.',
  },
  simulated: {
    label: 'Simulated',
    tone: 'warn',
    meaning: 'Reproduced, but the evidence is a simulation: it proves nothing about a real machine.',
  },
  word: {
    label: "Coordinator's word",
    tone: 'warn',
    meaning: 'The record has no evidence for it. Only the coordinator states it; the command line of a provider says “on trust”.',
  },
  contradicted: {
    label: 'Contradicted',
    tone: 'bad',
    meaning: 'The evidence leads to another value or does not verify. Do not trust the record.',
  },
};

/** Labels for the state of one trust check, as the coordinator reports it. */
export const STATE_LABELS: Readonly<Record<PartState, Label>> = {
  ok: { label: 'Passed', tone: 'good', meaning: 'The coordinator checked it and found no fault.' },
  missing: { label: 'Missing', tone: 'neutral', meaning: 'There is no evidence yet.' },
  stale: { label: 'Out of date', tone: 'warn', meaning: 'The evidence was valid and is now too old.' },
  failed: { label: 'Failed', tone: 'bad', meaning: 'The evidence is invalid, or a protection is off.' },
};

/** Labels for the result of a verification step: a group of claims, such as those about the key. */
export const STEP_LABELS = {
  passed: { label: 'Passed', tone: 'good', meaning: 'The evidence supports every claim of the step.' },
  not_claimed: { label: 'Not claimed', tone: 'neutral', meaning: 'The record claims nothing here, so nothing was proved.' },
  failed: { label: 'Failed', tone: 'bad', meaning: 'At least one claim of the step is contradicted.' },
} as const satisfies Record<string, Label>;

export const TRUST_LEVELS = {
  hardware: {
    label: 'Hardware',
    meaning: "Apple's certificates, device management and the machine's own signed statements agree. In a simulation they are simulated.",
  },
  self_signed: { label: 'Self-signed', meaning: 'Statements are signed only by the key of the machine; nobody else confirms them.' },
  none: { label: 'None', meaning: 'A requirement for every request is not met. The machine gets no requests.' },
} as const;
