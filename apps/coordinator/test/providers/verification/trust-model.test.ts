/**
 * Trust under random histories of connections, challenges, device management, chains and clocks, with two keys and two serial numbers.
 *
 * A model that only knows which rules of the design are violated predicts the result.
 */
import { randomBytes } from 'node:crypto';
import { type Attestation, type KeyId, type Posture, type ProviderId, toBase64 } from '@inference/protocol';
import { providerIdOf, sha256Hex } from '@inference/protocol/crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Identity, SealingKey } from '../../../src/providers/session/registration/admission.js';
import { maxChallengeAge, SESSION_TIMINGS } from '../../../src/providers/session/session-options.js';
import type { DeviceChainEvidence, DeviceEvidence } from '../../../src/providers/verification/evidence.js';
import { SessionTrust } from '../../../src/providers/verification/session-trust.js';
import { MAX_MANAGEMENT_AGE_MS } from '../../../src/providers/verification/trust-policy.js';
import { DAY_MS, DeviceWorld } from './device-fixtures.js';

const START = Date.UTC(2026, 5, 1);
const KEYS = [new Uint8Array(randomBytes(65)), new Uint8Array(randomBytes(65))] as const;
const SERIALS = ['SERIALAAAA', 'SERIALBBBB'] as const;
const world = new DeviceWorld(START - 60 * DAY_MS);
const challengeAge = maxChallengeAge(SESSION_TIMINGS);

type Which = 0 | 1;
type Chain = { readonly key: Which; readonly serial: Which; readonly flaw: 'none' | 'sip' | 'nonce'; readonly day: number };

const chains = new Map<string, DeviceChainEvidence>();
/** A chain issued at the start of a day. Cached. */
function chainOf(chain: Chain): DeviceChainEvidence {
  const name = JSON.stringify(chain);
  const known = chains.get(name);
  if (known !== undefined) return known;
  const device = { serialNumber: SERIALS[chain.serial], ...(chain.flaw === 'sip' ? { sipEnabled: false } : {}) };
  const nonce = chain.flaw === 'nonce' ? new Uint8Array(32) : undefined;
  const made = world.chain(KEYS[chain.key], device, chain.day, nonce);
  chains.set(name, made);
  return made;
}

/** The facts that the rules of the design refer to. */
interface Row {
  owner: Which;
  securityAt: number | null;
  managedSip: boolean;
  managedBoot: boolean;
  managedDisk: boolean;
  information: Which | null;
  chain: Chain | null;
}

class Model {
  now = START;
  connection: { key: Which; serial: Which; sip: boolean; challengedAt: number; sealedUntil: number } | null = null;
  readonly rows: [Row | null, Row | null] = [null, null];

  get level(): 'hardware' | 'self_signed' | null {
    const { connection, now } = this;
    if (connection === null) return null;
    if (!connection.sip || now >= connection.challengedAt + challengeAge || now >= connection.sealedUntil) return null;
    const row = this.rows[connection.key];
    const managed = row?.securityAt != null && now < row.securityAt + MAX_MANAGEMENT_AGE_MS;
    const guarded = row?.managedSip === true && row.managedBoot && row.managedDisk;
    const chain = row?.chain;
    const attested = chain != null && chain.flaw === 'none' && now < chain.day + 30 * DAY_MS;
    const bound = chain?.key === connection.key && row?.owner === connection.key;
    const oneMachine = chain?.serial === connection.serial && row?.information === connection.serial;
    return managed && guarded && attested && bound && oneMachine ? 'hardware' : 'self_signed';
  }
}

/** The code under test: evidence stored per key, and one connection. */
class Real {
  now = START;
  readonly store = new Map<string, DeviceEvidence>();
  trust: SessionTrust | null = null;
  key: Which = 0;

  connect(key: Which, serial: Which): void {
    this.trust?.stop();
    this.key = key;
    const options = {
      limits: { maxChallengeAgeMs: challengeAge, maxManagementAgeMs: MAX_MANAGEMENT_AGE_MS },
      allowSimulatedEnclave: true,
      anchor: world.anchor,
      now: () => this.now,
      onExpiry: () => {},
    };
    this.trust = new SessionTrust(options);
    this.trust.admitted(identityOf(key, serial, this.now), posture(true), sealingKey(this.now + 3_600_000));
    this.trust.deviceChanged(this.store.get(sha256Hex(KEYS[key])) ?? null);
  }

  put(key: Which, evidence: DeviceEvidence): void {
    this.store.set(sha256Hex(KEYS[key]), evidence);
    if (this.trust !== null && this.key === key) this.trust.deviceChanged(evidence);
  }

  row(key: Which): DeviceEvidence {
    const publicKeySha256 = sha256Hex(KEYS[key]);
    const none = { publicKeySha256, enrolledAt: this.now, security: null, information: null, chain: null, acme: null };
    return this.store.get(publicKeySha256) ?? none;
  }
}

const posture = (sip_enabled: boolean): Posture => ({
  secure_enclave: false,
  sip_enabled,
  secure_boot_enabled: true,
  authenticated_root_enabled: true,
});

function sealingKey(notAfter: number): SealingKey {
  const statement = { payload: '', signature: '' };
  return { keyId: '0'.repeat(16) as KeyId, publicKey: new Uint8Array(32), notBefore: 0, notAfter, statement };
}

function identityOf(key: Which, serial: Which, now: number): Identity {
  const attestation: Attestation = {
    v: 1,
    se_public_key: toBase64(KEYS[key]),
    key_protection: 'software',
    chip_name: 'Simulated M-series',
    hardware_model: 'SimulatedMac1,1',
    serial_number: SERIALS[serial],
    os_version: 'Simulated macOS 15.0',
    memory_gb: 16,
    posture: posture(true),
    agent: { version: '1' },
    issued_at: now,
  };
  return {
    providerId: providerIdOf(KEYS[key]) as ProviderId,
    publicKey: KEYS[key],
    publicKeySha256: sha256Hex(KEYS[key]),
    attestation,
    attestationStatement: { payload: '', signature: '' },
    attestationSha256: '0'.repeat(64),
    simulated: true,
  };
}

type Step = (model: Model, real: Real) => void;

function rowOf(model: Model, owner: Which): Row {
  const blank = { securityAt: null, managedSip: true, managedBoot: true, managedDisk: true, information: null, chain: null };
  const row = model.rows[owner] ?? { owner, ...blank };
  model.rows[owner] = row;
  return row;
}

const connect =
  (key: Which, serial: Which): Step =>
  (model, real) => {
    model.connection = { key, serial, sip: true, challengedAt: model.now, sealedUntil: model.now + 3_600_000 };
    real.connect(key, serial);
  };
const disconnect: Step = (model, real) => {
  model.connection = null;
  real.trust?.stop();
  real.trust = null;
};
const challenge =
  (sip: boolean): Step =>
  (model, real) => {
    if (model.connection === null) return;
    Object.assign(model.connection, { sip, challengedAt: model.now });
    real.trust?.challengePassed(posture(sip));
  };
const miss: Step = (_model, real) => real.trust?.challengeMissed(1);
const renewKey: Step = (model, real) => {
  if (model.connection === null) return;
  model.connection.sealedUntil = model.now + 3_600_000;
  real.trust?.sealingKeyChanged(sealingKey(real.now + 3_600_000));
};
const wait =
  (milliseconds: number): Step =>
  (model, real) => {
    model.now += milliseconds;
    real.now += milliseconds;
  };
const security =
  (key: Which, off: 'nothing' | 'sip' | 'boot' | 'disk'): Step =>
  (model, real) => {
    Object.assign(rowOf(model, key), {
      securityAt: model.now,
      managedSip: off !== 'sip',
      managedBoot: off !== 'boot',
      managedDisk: off !== 'disk',
    });
    real.put(key, {
      ...real.row(key),
      security: {
        receivedAt: real.now,
        sipEnabled: off !== 'sip',
        secureBootLevel: off === 'boot' ? 'medium' : 'full',
        diskEncryptionEnabled: off !== 'disk',
        authenticatedRootEnabled: null,
      },
    });
  };
const information =
  (key: Which, serial: Which): Step =>
  (model, real) => {
    rowOf(model, key).information = serial;
    const udid = { provisioningUdid: '00006041-00112233AABBCCDC', softwareUpdateDeviceId: 'J575cAP' };
    real.put(key, { ...real.row(key), information: { receivedAt: real.now, serialNumber: SERIALS[serial], ...udid } });
  };
const attest =
  (key: Which, serial: Which, bound: Which, flaw: Chain['flaw']): Step =>
  (model, real) => {
    const chain = { key: bound, serial, flaw, day: Math.floor(model.now / DAY_MS) * DAY_MS };
    rowOf(model, key).chain = chain;
    real.put(key, { ...real.row(key), chain: chainOf(chain) });
  };
/** All steps of a correct Mac. */
const everything =
  (key: Which, serial: Which): Step =>
  (model, real) => {
    for (const step of [connect(key, serial), security(key, 'nothing'), information(key, serial), attest(key, serial, key, 'none')])
      step(model, real);
  };
/** Copies the evidence of one key to the other, as in a restore by serial number. */
const copy =
  (from: Which, relabel: boolean): Step =>
  (model, real) => {
    const to: Which = from === 0 ? 1 : 0;
    const row = model.rows[from];
    if (row === null) return;
    model.rows[to] = { ...row, owner: relabel ? to : row.owner };
    const evidence = real.row(from);
    real.put(to, relabel ? { ...evidence, publicKeySha256: sha256Hex(KEYS[to]) } : evidence);
  };

const which = fc.constantFrom<Which>(0, 1);
const steps: fc.Arbitrary<[string, Step]> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(which, which).map(([key, serial]) => [`everything ${key} ${serial}`, everything(key, serial)] as [string, Step]),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(which, which).map(([key, serial]) => [`connect ${key} ${serial}`, connect(key, serial)] as [string, Step]),
  },
  fc.constant<[string, Step]>(['disconnect', disconnect]),
  { weight: 3, arbitrary: fc.constant<[string, Step]>(['challenge', challenge(true)]) },
  fc.constant<[string, Step]>(['challenge without SIP', challenge(false)]),
  fc.constant<[string, Step]>(['miss', miss]),
  { weight: 2, arbitrary: fc.constant<[string, Step]>(['renew key', renewKey]) },
  {
    weight: 4,
    arbitrary: fc
      .constantFrom(1000, 60_000, challengeAge - 1, challengeAge, 3_599_999, 3_600_000, DAY_MS - 1, DAY_MS, 6 * DAY_MS, 30 * DAY_MS)
      .map((ms) => [`wait ${ms}`, wait(ms)] as [string, Step]),
  },
  fc
    .tuple(which, fc.constantFrom('nothing', 'sip', 'boot', 'disk'))
    .map(([key, off]) => [`security ${key} ${off}`, security(key, off as 'nothing')] as [string, Step]),
  fc.tuple(which, which).map(([key, serial]) => [`information ${key} ${serial}`, information(key, serial)] as [string, Step]),
  fc
    .tuple(which, which, which, fc.constantFrom<Chain['flaw']>('none', 'none', 'sip', 'nonce'))
    .map(([key, serial, bound, flaw]) => [`attest ${key} ${serial} ${bound} ${flaw}`, attest(key, serial, bound, flaw)] as [string, Step]),
  fc.tuple(which, fc.boolean()).map(([from, relabel]) => [`copy ${from} ${relabel}`, copy(from, relabel)] as [string, Step]),
);

test('hardware needs every part, and is lost with any of them', () => {
  const reached = { hardware: 0, self_signed: 0, none: 0 };
  fc.assert(
    fc.property(fc.array(steps, { minLength: 1, maxLength: 30 }), (history) => {
      const [model, real] = [new Model(), new Real()];
      try {
        const told: string[] = [];
        for (const [name, step] of history) {
          told.push(name);
          step(model, real);
          const level = real.trust?.verdict().level ?? null;
          reached[level ?? 'none']++;
          expect(level, told.join(', ')).toBe(model.level);
        }
      } finally {
        real.trust?.stop();
      }
    }),
    { numRuns: 80 },
  );
  // The random walk is only meaningful if it reaches every state often.
  expect(Math.min(reached.hardware, reached.self_signed, reached.none)).toBeGreaterThan(50);
});

test('without a challenge, all trust ends within one challenge period and the tolerated misses', () => {
  const [model, real] = [new Model(), new Real()];
  everything(0, 0)(model, real);
  expect(real.trust?.verdict().level).toBe('hardware');
  wait(challengeAge - 1)(model, real);
  expect(real.trust?.verdict().level).toBe('hardware');
  wait(1)(model, real);
  expect(real.trust?.verdict().level).toBeNull();
  real.trust?.stop();
  expect(challengeAge).toBe(5 * 60_000 + 4 * 30_000);
});
