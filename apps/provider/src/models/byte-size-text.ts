/** Formats a number of bytes for display, in MB below one GB: "650.3 MB", "4.7 GB". Negative numbers are shown as 0. */
export function byteSizeText(bytes: number): string {
  return bytes < 1e9 ? `${(Math.max(0, bytes) / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
