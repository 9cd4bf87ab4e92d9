/** Hands a text that this page made to the browser as a file. */

/** The address of the text is given up after this, in milliseconds: by then the browser has read it. */
const KEPT_MS = 60_000;

export function download(fileName: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  link.href = url;
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
