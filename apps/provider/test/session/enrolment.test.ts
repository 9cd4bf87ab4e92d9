import type { ProviderMessage, TrustMessage } from '@inference/protocol';
import { expect, test } from 'vitest';
import { Enrolment, type EnrolmentEvent } from '../../src/session/enrolment.js';

function standing(reason: string | null): TrustMessage {
  const part =
    reason === null
      ? { name: 'device_management', state: 'ok' as const }
      : { name: 'device_management', state: 'missing' as const, reason };
  return { type: 'trust', trust_level: 'self_signed', routable: true, status: 'online', parts: [part] };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function wish(install: ((url: string) => Promise<void>) | null = null) {
  const sent: ProviderMessage[] = [];
  const events: EnrolmentEvent[] = [];
  const enrolment = new Enrolment({
    send: (message) => sent.push(message),
    install,
    onEvent: (event) => events.push(event),
    askAfterMs: 20,
  });
  return { enrolment, sent, events };
}

test('requests once while the coordinator repeats that the Mac is not enrolled', async () => {
  const { enrolment, sent } = wish();
  enrolment.onTrust(standing('not_enrolled'));
  enrolment.onTrust(standing('not_enrolled'));
  expect(sent).toEqual([]);
  await pause(60);
  expect(sent).toEqual([{ type: 'enrolment_request' }]);
  enrolment.stop();
});

test('does not ask when the coordinator had only not looked yet', async () => {
  const { enrolment, sent } = wish();
  enrolment.onTrust(standing('not_enrolled'));
  enrolment.onTrust(standing('security_info_missing'));
  enrolment.onTrust(standing(null));
  await pause(60);
  expect(sent).toEqual([]);
});

test('reports the address, and installs the profile on a simulated Mac', async () => {
  const offer = { type: 'enrolment', url: 'https://gateway.example/mdm/v1/enrolment/x', expires_at: 5 } as const;
  const real = wish();
  real.enrolment.onAnswer(offer);
  expect(real.events).toEqual([{ type: 'offered', url: offer.url, expiresAt: 5 }]);
  const installed: string[] = [];
  const simulated = wish(async (url) => void installed.push(url));
  simulated.enrolment.onAnswer(offer);
  await pause(5);
  expect(installed).toEqual([offer.url]);
  expect(simulated.events.map(({ type }) => type)).toEqual(['offered', 'installed']);
  const broken = wish(() => Promise.reject(new Error('no')));
  broken.enrolment.onAnswer(offer);
  await pause(5);
  expect(broken.events.map(({ type }) => type)).toEqual(['offered', 'failed']);
  for (const { enrolment } of [real, simulated, broken]) enrolment.stop();
});

test('takes a refusal for an answer', async () => {
  const { enrolment, sent, events } = wish();
  enrolment.onTrust(standing('not_enrolled'));
  await pause(60);
  enrolment.onAnswer({ type: 'enrolment_refused', reason: 'not_offered' });
  await pause(60);
  expect(events).toEqual([{ type: 'refused', reason: 'not_offered' }]);
  expect(sent).toHaveLength(1);
});
