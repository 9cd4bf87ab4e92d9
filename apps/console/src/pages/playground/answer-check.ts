/** What came of checking an answer in the browser, as the page shows it. */

export interface CheckLine {
  readonly ok: boolean;
  /** One sentence for people. */
  readonly text: string;
}

export type AnswerCheck =
  /** Nothing to check: no answer, or one that was stopped or broke off. */
  | { readonly state: 'none' }
  | { readonly state: 'checking' }
  | {
      readonly state: 'verified' | 'failed';
      readonly lines: readonly CheckLine[];
      readonly simulated: boolean;
      readonly jobId: string | null;
    }
  /** Nothing was found wrong, but there was nothing to check it against. */
  | { readonly state: 'unknown'; readonly reason: string };

/** What no check in a browser can show, whatever its result. */
export const NOT_PROVED: readonly string[] = [
  'That the model is the one named. The machine says so under its signature; weights cannot be seen from here.',
  'What the memory of the machine held, or that nobody read the conversation there. In standard mode the coordinator sees it, too.',
  'That the key lives in the attested Mac: a key can be relayed by a machine that is not it.',
];

export const NOT_PROVED_SIMULATED =
  'Anything about hardware: this machine has a simulated enclave, as development networks do. Its key is kept in software.';
