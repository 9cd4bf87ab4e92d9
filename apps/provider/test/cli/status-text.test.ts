/** Text of `status`: its lines never contradict one another. */
import { expect, it } from 'vitest';
import { statusLines } from '../../src/cli/output/status-text.js';
import { runningStatus } from '../support/owner-command.js';

it('does not claim to serve, nor to be ready, without a connection', () => {
  const lost = { state: 'not_connected', since: 0, problem: 'the network is down', retry_at: null } as const;
  const text = statusLines(runningStatus('/d', { connection: lost }), Date.now()).join('\n');
  expect(text).toContain('NOT connected');
  expect(text).toMatch(/^Serving +no: not connected to the coordinator$/m);
  expect(text).not.toContain('ready for requests');
  expect(statusLines(runningStatus('/d'), Date.now()).join('\n')).toMatch(/^Serving +yes$/m);
});
