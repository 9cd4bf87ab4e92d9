/** Milliseconds until the object URL is revoked, enough for the browser to read the text. */
const REVOKE_AFTER_MS = 60_000;

/** Downloads a text produced by this page as a file. `type`: media type without parameters. */
export function downloadText(fileName: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER_MS);
}

/** Downloads a file of the coordinator, which names the file itself. The browser streams it to the disk. */
export function downloadFile(path: string): void {
  const link = document.createElement('a');
  link.href = path;
  link.download = '';
  link.click();
}
