/** `downloadText` and `downloadFile`: start downloads in the browser. */

/** Time for the browser to read a text before its object URL is revoked. */
const REVOKE_AFTER_MS = 60_000;

/** Downloads a text of this page as a file. `type`: media type without parameters. */
export function downloadText(fileName: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), REVOKE_AFTER_MS);
}

/** Downloads a file of the coordinator, whose response contains the file name. The browser streams the file to the disk. */
export function downloadFile(path: string): void {
  const link = document.createElement('a');
  link.href = path;
  link.download = '';
  link.click();
}
