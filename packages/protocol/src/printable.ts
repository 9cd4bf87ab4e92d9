/** Makes untrusted text safe to print on a terminal. */

/** Replaces control characters and direction marks, which could forge lines or colours, with question marks. */
export function toPrintable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters must not reach the terminal
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, '?');
}
