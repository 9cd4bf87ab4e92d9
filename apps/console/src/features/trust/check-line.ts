/** One line of a verification report: a check of an answer and its outcome. */
export interface CheckLine {
  readonly ok: boolean;
  /** One sentence. */
  readonly text: string;
}
