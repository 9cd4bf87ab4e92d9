/** Time after which the object URL is revoked, in milliseconds. The browser has read the text by then. */
const REVOKE_AFTER_MS = 60_000;

/** Offers a text that this page produced as a file. `type`: media type without parameters. */
export function downloadText(fileName: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER_MS);
}
