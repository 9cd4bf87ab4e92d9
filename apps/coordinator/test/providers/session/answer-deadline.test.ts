/** A database that never answers does not block later requests of a session. */
import type { CoordinatorMessage, ProviderId } from '@inference/protocol';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { MAX_ANSWER_MS, withinDeadline } from '../../../src/providers/session/answer-deadline.js';
import { EnrolmentRequests } from '../../../src/providers/session/enrolment-requests.js';
import { LinkRequests } from '../../../src/providers/session/link-requests.js';
import type { Identity } from '../../../src/providers/session/registration/admission.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new Promise<never>(() => {});

it('a token is checked after one whose check hangs', async () => {
  const sent: CoordinatorMessage[] = [];
  const service = async (_id: ProviderId, token: string) =>
    token === 'first' ? never : ({ kind: 'linked', accountId: 'account', accountName: 'Ada' } as const);
  const links = new LinkRequests(
    (...args) => withinDeadline(service(...args)),
    (message) => sent.push(message),
  );
  links.submit('provider' as ProviderId, 'first');
  links.submit('provider' as ProviderId, 'second');
  await vi.advanceTimersByTimeAsync(MAX_ANSWER_MS);
  expect(sent).toMatchObject([
    { type: 'link_refused', reason: 'try_later' },
    { type: 'linked', account_id: 'account' },
  ]);
  expect(links.ownerAccountId).toBe('account');
});

it('an enrolment is offered after one that hangs', async () => {
  let count = 0;
  const service = async () => (count++ === 0 ? never : ({ kind: 'offered', url: 'https://a.example', expiresAt: 1 } as const));
  const enrolments = new EnrolmentRequests(() => withinDeadline(service()), Date.now);
  const first = enrolments.answer({} as Identity);
  await vi.advanceTimersByTimeAsync(MAX_ANSWER_MS);
  expect(await first).toEqual({ type: 'enrolment_refused', reason: 'try_later' });
  await vi.advanceTimersByTimeAsync(5000);
  expect(await enrolments.answer({} as Identity)).toMatchObject({ type: 'enrolment' });
});
