import { formatFor } from '@inference/formats';
import { expect, it } from 'vitest';
import { matchesContext } from '../../src/jobs/channel/parsed-body.js';

const ENDPOINT = '/v1/chat/completions';

it.each([
  ['the model of the body', {}, 'one', true],
  ['another model', {}, 'two', false],
  ['a fallback model of the body', { models: ['two', 'three'] }, 'three', true],
  ['none of the fallback models', { models: ['two'] }, 'three', false],
  ['another model than the body names with preferences', { provider: { only: ['SERIAL'] } }, 'two', false],
])('a job for %s', (_what, members, model, expected) => {
  const body = { model: 'one', messages: [{ role: 'user', content: 'hi' }], ...members };
  const { params } = formatFor(ENDPOINT).parse(Buffer.from(JSON.stringify(body)));
  expect(matchesContext(params, { endpoint: ENDPOINT, model, stream: false })).toBe(expected);
});
