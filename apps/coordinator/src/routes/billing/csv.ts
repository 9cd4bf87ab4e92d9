/** CSV lines (RFC 4180), and content negotiation for CSV (RFC 9110). */

type CsvField = string | number;

export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

/** One line, including CRLF. */
export function csvLine(fields: readonly CsvField[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

function csvField(field: CsvField): string {
  if (typeof field === 'number') return String(field);
  // Spreadsheets evaluate such text as a formula, unless an apostrophe precedes it.
  const text = /^[=+\-@\t\r\n]/.test(field) ? `'${field}` : field;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Whether an `Accept` header prefers `text/csv` to JSON (RFC 9110 section 12.5.1). */
export function prefersCsv(accept: string | undefined): boolean {
  const qualityByType = new Map<string, number>();
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
    const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    qualityByType.set(type, weight === undefined ? 1 : Number.parseFloat(weight) || 0);
  }
  const json = qualityByType.get('application/json') ?? qualityByType.get('application/*') ?? qualityByType.get('*/*') ?? 0;
  return (qualityByType.get('text/csv') ?? 0) > json;
}
