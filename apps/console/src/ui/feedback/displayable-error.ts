/** Error with its own text for the user. Other errors are shown with their message. */
export abstract class DisplayableError extends Error {
  /** Text for the user, with advice if there is any. */
  abstract readonly displayText: string;
  /** Request id to quote to the operator; null if quoting one would not help. */
  abstract readonly supportId: string | null;
}
