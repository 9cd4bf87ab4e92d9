/** Outcome of one check of an answer. */
export interface CheckLine {
  readonly ok: boolean;
  /** One sentence. */
  readonly text: string;
}
