/** Formats measured latencies, uptimes and context lengths. */

/** Formats as `320 ms`, `1.4 s` or `12 s`. */
export function formatLatency(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return `${ms < 10_000 ? (ms / 1000).toFixed(1) : Math.round(ms / 1000)} s`;
}

/** Formats an uptime as percent, rounded down to hundredths. Only a model without a failed check has 100%. */
export function formatUptime(share: number): string {
  const hundredths = Math.floor(share * 10_000);
  if (hundredths === 10_000) return '100%';
  return `${(hundredths / 100).toFixed(2)}%`;
}

/** Formats a context length: multiples of 1024 tokens as `32K`, others as `32,000`. */
export function formatContext(tokens: number): string {
  return tokens >= 1024 && tokens % 1024 === 0 ? `${tokens / 1024}K` : new Intl.NumberFormat('en').format(tokens);
}
