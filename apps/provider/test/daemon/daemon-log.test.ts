/** Levels of log lines: an error is something to act on. */
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { logSession } from '../../src/daemon/daemon-log.js';

it('logs the restart of a coordinator as information, and a refusal as an error', () => {
  const levels: string[] = [];
  const log = pino({ formatters: { level: (label) => ({ level: label }) } }, { write: (line) => void levels.push(JSON.parse(line).level) });
  const rejected = { type: 'rejected', reason: null, message: '', advice: '', retryInMs: 300 } as const;
  logSession(log, { ...rejected, code: 'shutting_down' });
  logSession(log, { ...rejected, code: 'attestation_refused' });
  logSession(log, { type: 'lost', reason: 'closed', retryInMs: 300 });
  expect(levels).toEqual(['info', 'error', 'warn']);
});
