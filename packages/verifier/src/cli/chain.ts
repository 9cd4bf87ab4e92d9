/** `inference-verify chain`: verifies a device attestation chain (PEM) up to Apple's pinned root, at a given time. */
import { toHex } from '@inference/protocol';
import { type ExpectedDevice, verifyDeviceChain } from '../chain/verify-device-chain.js';
import { type Command, readArguments, UnavailableError, UsageError } from './command.js';
import { readText } from './download.js';

export const chainCommand: Command = {
  usage: 'chain FILE.pem [--serial SERIAL] [--at ISO_TIME]',
  summary: "Verify a device attestation chain (leaf first) to the manufacturer's root, and print the certified facts.",
  async run(args) {
    const { positional, text } = readArguments(args, { serial: { type: 'string' }, at: { type: 'string' } });
    const at = text('at');
    const now = at === null ? Date.now() : Date.parse(at);
    if (positional === null) throw new UsageError('chain needs a file');
    if (Number.isNaN(now)) throw new UsageError(`--at needs a time such as 2026-11-20T12:00:00Z, not ${JSON.stringify(at)}`);
    const chain = decode(await readText(positional), positional);
    const serial = text('serial');
    const expected: ExpectedDevice = serial === null ? {} : { serial };
    const verdict = verifyDeviceChain(chain, expected, now);
    const facts = verdict.facts === null ? null : { ...verdict.facts, freshness: toHex(verdict.facts.freshness) };
    const passed = `passed: ${verdict.steps.join(', ') || 'nothing'}`;
    const message = verdict.ok ? `verified\n${passed}\n${JSON.stringify(facts, null, 2)}` : `NOT VERIFIED: ${verdict.code}\n${passed}`;
    return { verified: verdict.ok, text: message, json: { ...verdict, facts } };
  },
};

/** The base64 of each certificate in PEM (RFC 7468). */
function decode(pem: string, file: string): string[] {
  const blocks = [...pem.matchAll(/-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g)];
  if (blocks.length === 0) throw new UnavailableError(`${file} has no certificates in PEM`);
  return blocks.map(([, base64 = '']) => base64.replace(/\s/g, ''));
}
