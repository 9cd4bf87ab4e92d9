import { PROVIDER_STATUSES } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { statusLabel } from '../../src/features/machines/status-texts.js';
import { statusText } from '../../src/pages/network/status-badges.js';

describe('every status of the API', () => {
  const unknown = statusText('new_status');

  it.each(PROVIDER_STATUSES)('%s has a text of its own', (status) => {
    expect(statusText(status).meaning).not.toBe(unknown.meaning);
    expect(statusLabel(status).label).not.toBe(status.replaceAll('_', ' '));
  });

  it('may be joined by others later, which are shown as their code', () => {
    expect(unknown).toEqual({ label: 'New status', tone: 'neutral', meaning: 'Accepts no requests now.' });
  });
});
