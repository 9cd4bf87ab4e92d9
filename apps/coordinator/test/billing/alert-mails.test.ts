import { expect, it } from 'vitest';
import { sendAlertMails } from '../../src/billing/alert-mails.js';
import { completeGroups } from '../../src/database/accounts/complete-groups.js';

const due = [
  { id: 'a', to: 'refused' },
  { id: 'b', to: 'refused' },
  { id: 'b', to: 'bob' },
  { id: 'c', to: 'carol' },
];

it('a refused address stops neither the other recipients of an alert nor other alerts', async () => {
  const accepted: string[] = [];
  const mailed: string[] = [];
  const sending = sendAlertMails({
    due,
    idOf: ({ id }) => id,
    send: async ({ to }) => {
      if (to === 'refused') throw new Error('550');
      accepted.push(to);
    },
    mailed: async ({ id }) => void mailed.push(id),
  });
  await expect(sending).rejects.toThrow('550');
  expect(accepted).toEqual(['bob', 'carol']);
  expect(mailed).toEqual(['b', 'c']);
});

it('a group that the limit may have cut waits for the next run, unless the group alone reaches the limit', () => {
  const idOf = ({ id }: { readonly id: string }): string => id;
  expect(completeGroups(due, 4, idOf)).toEqual(due.slice(0, 3));
  expect(completeGroups(due, 5, idOf)).toEqual(due);
  expect(completeGroups(due.slice(1, 3), 2, idOf)).toEqual(due.slice(1, 3));
});

it('an unreachable mail service is given up after five refusals', async () => {
  let sent = 0;
  const sending = sendAlertMails({
    due: Array.from({ length: 100 }, (_, index) => ({ id: String(index) })),
    idOf: ({ id }) => id,
    send: async () => {
      sent++;
      throw new Error('timeout');
    },
    mailed: async () => expect.unreachable(),
  });
  await expect(sending).rejects.toThrow('timeout');
  expect(sent).toBe(5);
});
