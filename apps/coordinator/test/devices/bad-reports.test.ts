/** Input from strangers and misbehaving Macs, each with the expected code. */
import { type Misbehaviour, reportEvent, type SentEvent, sendEvent, sendRaw } from '@inference/device-simulation';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACME_WEBHOOK_PATH, WEBHOOK_PATH } from '../../src/routes/devices/devices.js';
import { errorOf, until } from '../support/harness.js';
import { type ManagedNetwork, startManagedNetwork, WEBHOOK_SECRET } from './managed-network.js';

/** Status and error code of an answer; without an error, its outcome. */
function verdictOf(sent: SentEvent): readonly [number, string] {
  const body = JSON.parse(sent.answer) as { error?: { message: string }; kind?: string; what?: string; reason?: string; code?: string };
  return [sent.status, body.error?.message ?? `${body.kind}:${body.what ?? body.reason ?? body.code}`];
}

describe('forged, replayed and misplaced reports', () => {
  let network: ManagedNetwork;
  beforeAll(async () => {
    network = await startManagedNetwork();
  });
  afterAll(() => network.close());

  /** A managed Mac that has answered its first queries. */
  async function settled(misbehaviours: readonly Misbehaviour[] = []) {
    const enrolled = await network.enrolled({ mac: { misbehaviours } });
    await until(() => network.device(enrolled.provider).commands.filter((command) => command.outcome !== null).length === 2);
    await network.management.settled();
    return enrolled;
  }

  /** The coordinator's answers to the events of one Mac, newest last. */
  function verdictsOf(udid: string): (readonly [number, string])[] {
    return network.management.sent.filter((sent) => sent.body.includes(udid)).map(verdictOf);
  }

  const send = (event: Record<string, unknown>, options = {}) => sendEvent(network.management.webhook, event, network.clock.now, options);

  it('are rejected without a signature, with a wrong signature, and after their maximum age', async () => {
    const { mac } = await settled();
    const event = reportEvent(mac.identity.udid, mac.answer({ uuid: 'X', requestType: 'SecurityInfo', nonce: null }) ?? expect.fail(), {});
    const unsigned = await send(event, { signature: 'none' });
    expect(verdictOf(unsigned)).toEqual([401, 'webhook_unsigned']);
    expect(JSON.parse(unsigned.answer)).toMatchObject({ error: { code: 'webhook_not_authentic' } });
    expect(verdictOf(await send(event, { signature: 'wrong' }))).toEqual([401, 'webhook_bad_signature']);
    const old = await sendEvent(network.management.webhook, event, network.clock.now - 11 * 60_000);
    expect(verdictOf(old)).toEqual([400, 'webhook_stale']);
    const ahead = await sendEvent(network.management.webhook, event, network.clock.now + 11 * 60_000);
    expect(verdictOf(ahead)).toEqual([400, 'webhook_stale']);
  });

  it('are rejected with one changed byte', async () => {
    const { mac } = await settled();
    const last = network.management.sent.findLast((sent) => sent.body.includes(mac.identity.udid)) ?? expect.fail();
    const changed = last.body.replace('"Acknowledged"', '"Acknowledgee"');
    expect(verdictOf(await sendRaw(network.management.webhook, changed, last.headers))).toEqual([401, 'webhook_bad_signature']);
  });

  it('are rejected when repeated, unchanged or newly signed', async () => {
    const { mac } = await settled();
    for (const sent of network.management.sent.filter((one) => one.body.includes(mac.identity.udid))) {
      const again = await sendRaw(network.management.webhook, sent.body, sent.headers);
      expect(verdictOf(again)).toEqual([409, 'replayed']);
    }
    const report = JSON.parse(network.management.sent.findLast((sent) => sent.body.includes('acknowledge_event'))?.body ?? '{}');
    expect(verdictOf(await send({ topic: 'mdm.Connect', acknowledge_event: report.acknowledge_event }))).toEqual([409, 'replayed']);
    const twice = await settled(['duplicate_answers']);
    const verdicts = verdictsOf(twice.mac.identity.udid).map(([, code]) => code);
    expect(verdicts.filter((code) => code === 'replayed')).toHaveLength(2);
    expect(verdicts).toContain('taken:security_info');
  });

  it('are rejected after the expiry of their command', async () => {
    const slow = await startManagedNetwork();
    try {
      const { provider, mac } = await slow.enrolled({ mac: { misbehaviours: ['no_answer'] } });
      await until(() => slow.device(provider).commands.length === 2);
      const asked = slow.device(provider).commands.find((command) => command.kind === 'security_info');
      slow.clock.advance(11 * 60_000);
      mac.misbehaviours = new Set();
      const late = await slow.management.report(mac.identity.udid, { uuid: asked?.uuid ?? '', requestType: 'SecurityInfo', nonce: null });
      expect(late && verdictOf(late)).toEqual([400, 'answered_too_late']);
      expect(slow.device(provider).evidence).toMatchObject({ security: null });
    } finally {
      await slow.close();
    }
  });

  it("are rejected as answers to another Mac's command", async () => {
    const { provider } = await network.enrolled({ mac: { misbehaviours: ['no_answer'] } });
    const other = await settled();
    await until(() => network.device(provider).commands.length === 2);
    const theirs = network.device(provider).commands.find((command) => command.kind === 'security_info');
    const sent = await network.management.report(other.mac.identity.udid, {
      uuid: theirs?.uuid ?? '',
      requestType: 'SecurityInfo',
      nonce: null,
    });
    expect(sent && verdictOf(sent)).toEqual([400, 'command_of_other_device']);
    expect(network.device(provider).evidence.security).toBeNull();
  });

  it('are rejected as answers to another kind of command', async () => {
    const { provider, mac } = await network.enrolled({ mac: { misbehaviours: ['no_answer'] } });
    await until(() => network.device(provider).commands.length === 2);
    const asked = network.device(provider).commands.find((command) => command.kind === 'device_information');
    mac.misbehaviours = new Set();
    const sent = await network.management.report(mac.identity.udid, { uuid: asked?.uuid ?? '', requestType: 'SecurityInfo', nonce: null });
    expect(sent && verdictOf(sent)).toEqual([400, 'report_of_other_kind']);
    expect(network.device(provider).evidence.security).toBeNull();
  });

  it.each<readonly [Misbehaviour, string]>([
    ['entity_bomb', '400 plist_dtd_refused'],
    ['huge_answer', '400 plist_too_large'],
    ['no_plist', '400 plist_malformed'],
    ['other_udid', '400 webhook_udid_mismatch'],
    ['other_command', '200 ignored:unknown_command'],
    ['not_now', '200 ignored:device_busy'],
  ])('are not taken from a Mac with %s: %s', async (misbehaviour, verdict) => {
    const { provider, mac } = await network.enrolled();
    await until(() => network.device(provider).evidence.security !== null && network.device(provider).evidence.chain !== null);
    const before = network.device(provider).evidence;
    mac.misbehaviours = new Set([misbehaviour]);
    network.harness.app.devices.evidence.markStale(before.publicKeySha256);
    await until(() => verdictsOf(mac.identity.udid).some(([status, code]) => `${status} ${code}` === verdict));
    expect(network.device(provider).evidence).toEqual(before);
  });

  it.each<readonly [Misbehaviour, string]>([
    ['wrong_serial', 'rejected:serial_mismatch'],
    ['wrong_provisioning_udid', 'rejected:udid_mismatch'],
    ['wrong_board', 'rejected:board_mismatch'],
    ['stale_nonce', 'rejected:stale_attestation'],
    ['no_attestation', 'rejected:no_attestation'],
    ['device_error', 'taken:device_error'],
  ])('prove nothing when a Mac has %s: %s', async (misbehaviour, verdict) => {
    const { provider, mac } = await settled([misbehaviour]);
    expect(verdictsOf(mac.identity.udid)).toContainEqual([200, verdict]);
    expect(network.device(provider).certifiedAt).toBeNull();
  });

  it('are read from a Mac that writes binary property lists', async () => {
    const { provider } = await settled(['binary_plist']);
    expect(network.device(provider).evidence.security).toMatchObject({ sipEnabled: true });
    expect(network.device(provider).certifiedAt).not.toBeNull();
  });

  it("do not count for a Mac with another Mac's certificate", async () => {
    const mine = await settled();
    // The same answer with the certificate chain of a Mac with another serial number.
    const other = network.management.addMac();
    const chain = other.attest(new Uint8Array(32));
    expect(chain).toHaveLength(2);
    expect(network.device(mine.provider).evidence.information?.serialNumber).toBe(mine.mac.identity.serialNumber);
    const stranger = await network.enrolled({ identity: {}, serial: mine.mac.identity.serialNumber });
    await until(() => network.device(stranger.provider).evidence.chain !== null);
    // A provider claims another Mac's serial number: the evidence shows the real one, and the claim has no effect.
    expect(network.device(stranger.provider).evidence.information?.serialNumber).toBe(stranger.mac.identity.serialNumber);
    expect(network.device(stranger.provider).evidence.information?.serialNumber).not.toBe(mine.mac.identity.serialNumber);
    expect(network.device(mine.provider).evidence.enrolledAt).not.toBeNull();
  });

  it('cannot take over the token of another enrolled Mac', async () => {
    const { provider, profile } = await settled();
    const thief = network.management.addMac();
    await network.management.enrol(thief.identity.udid, profile.replace(/com\.apple\.security\.acme/, 'com.apple.security.other'));
    expect(verdictsOf(thief.identity.udid)).toEqual([
      [400, 'token_of_other_device'],
      [200, 'ignored:unknown_device'],
    ]);
    expect(network.device(provider).evidence.enrolledAt).not.toBeNull();
  });

  it('bind no device with an unissued token, or without one', async () => {
    const { profile } = await settled();
    const mac = network.management.addMac();
    const bare = profile.replace(/com\.apple\.security\.acme/, 'com.apple.security.other');
    await network.management.enrol(mac.identity.udid, bare.replaceAll(/enrolment=[A-Za-z0-9_-]+/g, `enrolment=${'A'.repeat(43)}`));
    await network.management.enrol(mac.identity.udid, bare.replaceAll(/\?enrolment=[A-Za-z0-9_-]+/g, ''));
    expect(verdictsOf(mac.identity.udid).map(([, code]) => code)).toEqual([
      'unknown_token',
      'ignored:unknown_device',
      'ignored:no_enrolment_token',
      'ignored:unknown_device',
    ]);
  });

  it('are rejected if malformed', async () => {
    const sign = async (body: string): Promise<SentEvent> => {
      const { createHmac } = await import('node:crypto');
      const signature = createHmac('sha256', WEBHOOK_SECRET).update(body).digest('base64');
      return sendRaw(network.management.webhook, body, { 'x-hmac-signature': signature });
    };
    const created_at = new Date(network.clock.now).toISOString();
    for (const body of [
      '',
      '{',
      '[]',
      '{"topic":"mdm.Connect"}',
      JSON.stringify({ topic: 'mdm.Connect', created_at }),
      `{"topic":"mdm.Connect","created_at":"yesterday"}`,
    ]) {
      expect([body, ...verdictOf(await sign(body))]).toEqual([body, 400, 'webhook_malformed']);
    }
    const event = {
      topic: 'mdm.Connect',
      created_at,
      acknowledge_event: { udid: 'A', status: 'Acknowledged', raw_payload: 'not base64!' },
    };
    expect(verdictOf(await sign(JSON.stringify(event)))).toEqual([400, 'webhook_malformed']);
    const other = { topic: 'mdm.DeclarativeManagement', created_at, checkin_event: { udid: 'A', raw_payload: 'AAAA' } };
    expect(verdictOf(await sign(JSON.stringify(other)))).toEqual([200, 'ignored:other_topic']);
  });

  it('are rejected by size before parsing', async () => {
    for (const path of [WEBHOOK_PATH, ACME_WEBHOOK_PATH]) {
      const response = await fetch(network.harness.url + path, {
        method: 'POST',
        body: Buffer.alloc(600 * 1024, 'a'),
        headers: { 'x-hmac-signature': 'AAAA' },
      });
      expect([response.status, (await errorOf(response)).code]).toEqual([413, 'body_too_large']);
    }
    // Only the first packets of a hundred megabytes are read.
    let sent = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        sent += 65_536;
        controller.enqueue(new Uint8Array(65_536));
        if (sent >= 100 * 1024 * 1024) controller.close();
      },
    });
    const request = { method: 'POST', body: endless, duplex: 'half', headers: { 'x-hmac-signature': 'AAAA' } } as RequestInit;
    const status = await fetch(network.harness.url + WEBHOOK_PATH, request).then(
      (response) => response.status,
      () => 'cut off',
    );
    expect([413, 'cut off']).toContain(status);
    expect(sent).toBeLessThan(50 * 1024 * 1024);
  });

  it('are counted by outcome, for the operator, beside the next command of each device', async () => {
    const { provider } = await settled(['device_error']);
    const { harness } = network;
    expect((await harness.get('/admin/v1/devices')).status).toBe(403);
    const state = (await (await harness.get('/admin/v1/devices', harness.adminKey)).json()) as {
      devices: { provider_id: string; enrolment: string; commands: Record<string, object> }[];
      reports: Record<string, number>;
    };
    for (const label of ['taken:security_info', 'refused:webhook_bad_signature', 'refused:replayed', 'ignored:unknown_device']) {
      expect([label, (state.reports[label] ?? 0) > 0]).toEqual([label, true]);
    }
    expect(state.devices.find((device) => device.provider_id === provider.providerId)).toMatchObject({
      enrolment: 'active',
      commands: { security_info: { act: 'wait', reason: 'failed_before', last_failure: 'device_error', failures_in_a_row: 1 } },
    });
  });
});
