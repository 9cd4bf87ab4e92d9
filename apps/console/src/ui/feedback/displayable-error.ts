/** Error that chooses its own text for the user. Other errors are shown by their message. */
export abstract class DisplayableError extends Error {
  /** Text for the user, with advice where there is any. */
  abstract readonly displayText: string;
  /** Request id that the user may quote to the operator; null when quoting one would not help. */
  abstract readonly supportId: string | null;
}
