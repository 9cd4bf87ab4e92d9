/** `TERMS`: terms and meanings that `Legend` lists. Key: topic. */
import { RESULT_LABELS, STATE_LABELS, STEP_LABELS, TRUST_LEVELS } from './labels.js';
import { VERDICTS } from './verdicts.js';

export type Topic = 'verdicts' | 'results' | 'steps' | 'states' | 'levels' | 'evidence' | 'receipts';

interface Term {
  readonly term: string;
  readonly meaning: string;
}

function termsOf(texts: Readonly<Record<string, { readonly label: string; readonly meaning: string }>>): readonly Term[] {
  return Object.values(texts).map(({ label, meaning }) => ({ term: label, meaning }));
}

export const TERMS: Readonly<Record<Topic, { readonly title: string; readonly terms: readonly Term[] }>> = {
  verdicts: { title: 'Verdict on a machine or an answer', terms: termsOf(VERDICTS) },
  results: { title: 'Result for one claim of a record', terms: termsOf(RESULT_LABELS) },
  steps: { title: 'Result of a verification step', terms: termsOf(STEP_LABELS) },
  states: { title: 'State of a trust check, as the coordinator reports it', terms: termsOf(STATE_LABELS) },
  levels: { title: 'Trust level', terms: termsOf(TRUST_LEVELS) },
  evidence: {
    title: 'Evidence and keys',
    terms: [
      {
        term: 'Enclave key',
        meaning: 'The key pair of a machine. Its private part never leaves the Secure Enclave, or a file if the enclave is simulated.',
      },
      { term: 'Attestation record', meaning: 'The published claims about one machine, with the statements and certificates behind them.' },
      {
        term: 'Challenge',
        meaning: 'A random number that the machine signs every five minutes, together with the state of its protections.',
      },
      { term: 'Sealing key', meaning: 'The key that requests to the machine are encrypted to. Valid for at most one hour.' },
      { term: 'Pinned root', meaning: "Apple's root certificate, built into the verifier, where certificate chains must end." },
      {
        term: 'Certified, claimed, simulated',
        meaning: 'Evidence of the Secure Enclave: an Apple certificate, only the word of the machine, or a simulation.',
      },
    ],
  },
  receipts: {
    title: 'Answers and receipts',
    terms: [
      { term: 'Receipt', meaning: 'Summary of one request, signed by the machine: hashes of request and response, tokens, times.' },
      { term: 'Stated hash', meaning: 'SHA-256 that the answer names for its own bytes. The enclave key signs it.' },
      {
        term: 'Commitment',
        meaning: 'Keyed hash in the receipt of a sealed request. Only the client that sealed the request can check it.',
      },
    ],
  },
};
