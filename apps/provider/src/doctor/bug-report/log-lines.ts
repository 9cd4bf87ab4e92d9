/**
 * The log and the words of a crash, for a report. Of log lines only members that are known to be harmless are kept. Of a crash only
 * where it was: the message of an error may repeat what it stumbled over, which may be a prompt.
 */
import type { Redactor } from './redact.js';

const KEPT: ReadonlySet<string> = new Set([
  ...['level', 'time', 'event', 'msg', 'version', 'kind', 'code', 'reason', 'detail', 'problem', 'status', 'outcome', 'state'],
  ...['provider_id', 'job_id', 'model', 'models', 'slots', 'coordinator', 'trust_level', 'routable', 'gaps', 'changed', 'needs_restart'],
  ...['ms', 'retry_in_ms', 'delay_ms', 'jump_ms', 'finish_reason', 'prompt_tokens', 'completion_tokens', 'images'],
  ...['thermal', 'memoryPressure', 'power', 'path', 'expires_at', 'until', 'reasons'],
]);

export function redactLogLine(line: string, redactor: Redactor): string {
  try {
    const entry: unknown = JSON.parse(line);
    if (typeof entry === 'object' && entry !== null) return JSON.stringify(redactor.value(entry, KEPT));
  } catch {
    // Told below.
  }
  return JSON.stringify({ left_out: line.length });
}

/** Stack frames, names of errors and the version of Node; of any other line its length. */
export function redactCrashLine(line: string, redactor: Redactor): string {
  if (/^\s+at /.test(line) || /^Node\.js v[\d.]+$/.test(line)) return redactor.text(line);
  const name = /^(?:Uncaught )?([A-Z][A-Za-z]*(?:Error|Exception))\b/.exec(line)?.[1];
  const stands = name === undefined ? '' : `${name}: `;
  return line.trim() === '' ? '' : `${stands}<${line.length} characters left out>`;
}
