/** Validation of policies: every error names its member. */
import { describe, expect, test } from 'vitest';
import { TestSigner } from '../../protocol/test/log/log-fixture.js';
import { createVerifiedFetch, DEFAULT_POLICY, PolicyError, parsePolicy } from '../src/node.js';
import { BASE_URL, POLICY } from './scripted-network.js';

const LOG = new TestSigner('log.example', 1, 'ed25519');
const WITNESS = new TestSigner('witness.example', 2, 'cosignature');

describe('a policy', () => {
  test('has its defaults for members that are undefined', () => {
    const input = Object.fromEntries(Object.keys(DEFAULT_POLICY).map((member) => [member, undefined]));
    expect(parsePolicy(input)).toEqual(DEFAULT_POLICY);
  });

  test('requires a certificate of the manufacturer by default', () => {
    expect(parsePolicy()).toEqual(DEFAULT_POLICY);
    expect(DEFAULT_POLICY).toMatchObject({ evidence: 'maker', allowSimulated: false, candidates: 3 });
    expect(parsePolicy({ ...POLICY, candidates: 8 })).toEqual({ ...DEFAULT_POLICY, ...POLICY, candidates: 8 });
  });

  test.each([
    ['evidence', { evidence: 'none' }],
    ['allowSimulated', { allowSimulated: 'yes' }],
    ['anchors', { anchors: [] }],
    ['anchors.0.name', { anchors: [{ name: '*', publicKey: POLICY.anchors?.[0]?.publicKey }] }],
    ['anchors.0.publicKey', { anchors: [{ name: 'AAAA', publicKey: 'AAAA' }] }],
    ['maxKeyAge', { maxKeyAge: 3_600_001 }],
    ['maxChallengeAge', { maxChallengeAge: -1 }],
    ['maxChainAge', { maxChainAge: 1.5 }],
    ['enclaveKeys.0', { enclaveKeys: ['x'] }],
    ['serials', { serials: [] }],
    ['candidates', { candidates: 9 }],
    ['minCandidates', { minCandidates: 4 }],
    ['minLogAge', { minLogAge: 1 }],
    ['stickyFor', { stickyFor: null }],
    ['log', { log: true }],
    ['logKey', { logKey: LOG.verifierKey }],
    ['logKey', { log: 'required', logKey: `${LOG.verifierKey}x` }],
    ['logKey', { log: 'required', logKey: WITNESS.verifierKey }],
    ['logWitnesses', { log: 'required', logWitnesses: [WITNESS.verifierKey] }],
    ['logWitnesses.0', { log: 'required', logKey: LOG.verifierKey, logWitnesses: ['witness'] }],
    ['logWitnesses.1', { log: 'required', logKey: LOG.verifierKey, logWitnesses: [WITNESS.verifierKey, LOG.verifierKey] }],
    ['logWitnesses.1', { log: 'required', logKey: LOG.verifierKey, logWitnesses: [WITNESS.verifierKey, WITNESS.verifierKey] }],
    ['logQuorum', { log: 'required', logKey: LOG.verifierKey, logQuorum: 1 }],
    ['logQuorum', { log: 'required', logKey: LOG.verifierKey, logWitnesses: [WITNESS.verifierKey], logQuorum: 2 }],
    ['candidate', { candidate: 3 }],
    ['policy', []],
  ])('with a wrong %s names that member', (field, policy) => {
    const error = expect(() => parsePolicy(policy));
    error.toThrow(PolicyError);
    error.toThrow(new RegExp(`^policy: ${field.replaceAll('.', '\\.')} `));
  });
});

describe('options of a client', () => {
  test.each([
    ['baseURL', { baseURL: 'host' }],
    ['baseURL', { baseURL: 'ftp://host' }],
    ['baseURL', { baseURL: 'https://user@host/v1' }],
    ['logKey', { baseURL: BASE_URL, policy: { log: 'required' as const } }],
    ['cacheSecret', { baseURL: BASE_URL, cacheSecret: 'short' }],
  ])('with a wrong %s name it', (option, options) => {
    expect(() => createVerifiedFetch(options)).toThrow(option);
  });
});
