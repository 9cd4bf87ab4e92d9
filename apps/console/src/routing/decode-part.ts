/** Decodes a part of an address. A part that is not percent-encoded text, such as `%`, stays as it is. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
