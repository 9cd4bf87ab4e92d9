/** Tests the webhook receiver with events from NanoMDM's tests, and ACME attestation with the chain of a real device. */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { toBase64Url } from '@inference/protocol';
import { encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import { verifyAcmeAnswer } from '../../apps/coordinator/src/devices/acme.js';
import { isSignedBy, openWebhook, readWebhook } from '../../apps/coordinator/src/devices/webhook.js';
import { digestOf } from '../../apps/coordinator/src/devices/webhook-receiver.js';
import { APPLE_TRUST_ANCHOR } from '../../apps/coordinator/src/providers/verification/chain/trust-anchor.js';

const DEVICE = '66ADE930-5FDF-5EC4-8429-15640684C489';

export function deviceManagementVectors(directory: string): void {
  const file = (...path: readonly string[]): Buffer => readFileSync(join(directory, ...path));

  describe('webhook events recorded from NanoMDM', () => {
    const read = (name: string): unknown => {
      const body = file('device-management', name);
      const result = readWebhook(body, digestOf(body));
      return result.ok ? result.event : result.code;
    };

    test('a check-in', () => {
      expect(read('nanomdm-webhook-Authenticate.2.json')).toMatchObject({ kind: 'check_in', topic: 'Authenticate', deviceId: DEVICE });
    });

    test('an answer to a command', () => {
      expect(read('nanomdm-webhook-DeviceInformation.1.json')).toMatchObject({
        kind: 'report',
        deviceId: DEVICE,
        report: { udid: DEVICE, commandUuid: '76eda240-5488-4989-8339-f2ae160113c4', status: 'Acknowledged' },
      });
    });

    test('are refused unsigned, and for their age', () => {
      const body = file('device-management', 'nanomdm-webhook-DeviceInformation.1.json');
      const input = { body, secret: 'a secret', now: Date.now(), digest: digestOf(body) };
      expect(openWebhook({ ...input, signature: undefined })).toEqual({ ok: false, code: 'webhook_unsigned' });
      const signature = createHmac('sha256', 'a secret').update(body).digest('base64');
      expect(isSignedBy('a secret', body, signature)).toBe(true);
      expect(openWebhook({ ...input, signature })).toEqual({ ok: false, code: 'webhook_stale' });
    });
  });

  describe('a real ACME attestation chain', () => {
    const pem = file('apple-mda', 'acme-chain-nanoca.pem').toString();
    const x5c = (pem.match(/-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g) ?? []).map(
      (block) => new Uint8Array(Buffer.from(block.replace(/-----[^-]+-----|\s/g, ''), 'base64')),
    );
    const expected = JSON.parse(file('apple-mda', 'expected.json').toString()) as { file: string; serial: string }[];
    const serialNumber = expected.find((one) => one.file === 'acme-chain-nanoca.pem')?.serial ?? '';
    const attestationObject = toBase64Url(encode({ fmt: 'apple', attStmt: { x5c } }));
    const codeAt = (now: number, serial = serialNumber): string => {
      const verdict = verifyAcmeAnswer({ token: 'a'.repeat(43), attestationObject, serialNumber: serial }, APPLE_TRUST_ANCHOR, now);
      return verdict.ok ? 'verified' : verdict.code;
    };

    test('passes every check up to the freshness code, whose token is not known here', () => {
      expect(codeAt(Date.UTC(2025, 7, 1))).toBe('freshness_mismatch');
    });

    test('is refused today, and for another device', () => {
      expect(codeAt(Date.now())).toBe('leaf_expired');
      expect(codeAt(Date.UTC(2025, 7, 1), 'SERIAL0001')).toBe('serial_mismatch');
    });
  });
}
