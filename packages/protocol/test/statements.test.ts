import { describe, expect, test } from 'vitest';
import { concatBytes, fromBase64, toBase64, utf8 } from '../src/bytes.js';
import { canonicalJson, canonicalJsonBytes, type JsonValue } from '../src/canonical-json.js';
import { verifyP256 } from '../src/crypto/p256.js';
import { openAttestation } from '../src/statements/attestation.js';
import { openChallengeAnswer } from '../src/statements/challenge.js';
import { openE2eReceipt } from '../src/statements/e2e-receipt.js';
import { openKeyStatement } from '../src/statements/key.js';
import { openReceipt } from '../src/statements/receipt.js';
import {
  type SignedStatement,
  SignedStatementSchema,
  StatementError,
  type StatementKind,
  type StatementProblem,
  statementBytes,
} from '../src/statements/signed-statement.js';
import { generateEnclaveKey, jobContext, signDer, signPayload, signStatement } from './samples.js';
import { withFlippedBit } from './seeded-random.js';

type Members = { readonly [key: string]: JsonValue };

const key = generateEnclaveKey();
const sha256 = 'ab'.repeat(32);
const posture = { secure_enclave: true, sip_enabled: true, secure_boot_enabled: true, authenticated_root_enabled: true };

const samples: Record<StatementKind, Members> = {
  attestation: {
    v: 1,
    se_public_key: toBase64(key.x963),
    key_protection: 'file',
    chip_name: 'M4',
    hardware_model: 'Mac16,1',
    serial_number: 'X',
    os_version: '15.1',
    memory_gb: 16,
    posture,
    agent: { version: '0.1.0', sha256 },
    issued_at: 1,
  },
  challenge: { v: 1, nonce: toBase64(new Uint8Array(32)), session_id: 's', posture, issued_at: 1 },
  key: {
    v: 1,
    provider_id: jobContext.provider_id,
    key_id: jobContext.key_id,
    x25519_public_key: toBase64(new Uint8Array(32)),
    not_before: 1,
    not_after: 2,
    attestation_sha256: sha256,
  },
  receipt: {
    v: 1,
    job_id: jobContext.job_id,
    provider_id: jobContext.provider_id,
    se_key_sha256: sha256,
    model: 'pico',
    endpoint: '/v1/chat/completions',
    request_sha256: sha256,
    overrides: { max_tokens: 8192, image_urls: ['https://a.example/1'] },
    response_sha256: sha256,
    image_sha256: [sha256],
    client_nonce: 'A'.repeat(43),
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, images: 1 },
    hidden_tokens: 0,
    finish_reason: 'stop',
    started_at: 1,
    completed_at: 2,
  },
  'e2e-receipt': {
    v: 1,
    job_id: jobContext.job_id,
    provider_id: jobContext.provider_id,
    se_key_sha256: sha256,
    model: 'pico',
    endpoint: '/v1/chat/completions',
    context_sha256: sha256,
    sealed_request_sha256: sha256,
    sealed_response_sha256: sha256,
    request_commitment: sha256,
    response_commitment: sha256,
    image_commitments: [sha256],
    response_bytes: 9,
    usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, images: 1 },
    hidden_tokens: 0,
    finish_reason: 'stop',
    started_at: 1,
    completed_at: 2,
    engine: 'llama.cpp b1 (metal)',
  },
};

const openers = {
  attestation: openAttestation,
  challenge: openChallengeAnswer,
  key: openKeyStatement,
  receipt: openReceipt,
  'e2e-receipt': openE2eReceipt,
};
const kinds = Object.keys(openers) as StatementKind[];
const OPTIONAL = new Set([
  'attestation.agent.sha256',
  'receipt.client_nonce',
  'receipt.overrides.max_tokens',
  'receipt.overrides.image_urls',
  'receipt.image_sha256',
  'receipt.usage.images',
  'e2e-receipt.image_commitments',
  'e2e-receipt.usage.images',
]);

function problemOf(kind: StatementKind, statement: SignedStatement, publicKey = key.x963): StatementProblem | null {
  try {
    openers[kind](statement, publicKey, verifyP256);
    return null;
  } catch (error) {
    if (error instanceof StatementError) {
      expect(error.kind).toBe(kind);
      return error.problem;
    }
    throw error;
  }
}

/** Path of every member of an object, nested members included. */
function pathsOf(value: Members, prefix = ''): string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const path = prefix + name;
    const nested = typeof member === 'object' && member !== null && !Array.isArray(member);
    return nested ? [path, ...pathsOf(member as Members, `${path}.`)] : [path];
  });
}

function change(value: Members, path: string, replacement: (old: JsonValue) => JsonValue | undefined): Members {
  const copy = structuredClone(value) as { [key: string]: JsonValue | undefined };
  const names = path.split('.');
  const last = names.pop() as string;
  let target = copy;
  for (const name of names) target = target[name] as { [key: string]: JsonValue | undefined };
  target[last] = replacement(target[last] as JsonValue);
  return copy as Members;
}

function another(old: JsonValue): JsonValue {
  if (typeof old === 'number') return old + 1;
  if (typeof old === 'boolean') return !old;
  if (typeof old === 'string') return (old.startsWith('b') ? 'c' : 'b') + old.slice(1);
  return {};
}

describe.each(kinds)('%s statement', (kind) => {
  const sample = samples[kind];
  const statement = signStatement(key, kind, sample);

  test('opens to its value and the exact bytes that were signed', () => {
    const opened = openers[kind](statement, key.x963, verifyP256);
    expect(opened.value).toEqual(sample);
    expect(opened.payload).toEqual(canonicalJsonBytes(sample));
    expect(opened.signature).toEqual(fromBase64(statement.signature));
  });

  test('with any member changed does not carry the old signature', () => {
    for (const path of pathsOf(sample)) {
      const changed = canonicalJsonBytes(change(sample, path, another));
      expect(problemOf(kind, { ...statement, payload: toBase64(changed) }), path).toBe('bad_signature');
    }
  });

  test('with any byte of payload or signature changed is refused', () => {
    const payload = fromBase64(statement.payload);
    const signature = fromBase64(statement.signature);
    for (let byte = 0; byte < payload.length; byte += 3) {
      expect(problemOf(kind, { ...statement, payload: toBase64(withFlippedBit(payload, byte)) })).toBe('bad_signature');
    }
    for (let byte = 0; byte < signature.length; byte++) {
      expect(problemOf(kind, { ...statement, signature: toBase64(withFlippedBit(signature, byte)) })).toBe('bad_signature');
    }
  });

  test('lacking a required member, or with one of the wrong type, breaks the schema although it is signed', () => {
    for (const path of pathsOf(sample)) {
      const without = problemOf(
        kind,
        signStatement(
          key,
          kind,
          change(sample, path, () => undefined),
        ),
      );
      expect(without, path).toBe(OPTIONAL.has(`${kind}.${path}`) ? null : 'bad_schema');
      expect(
        problemOf(
          kind,
          signStatement(
            key,
            kind,
            change(sample, path, () => null),
          ),
        ),
        path,
      ).toBe('bad_schema');
    }
    for (const value of [null, [], 'text', 1] as JsonValue[]) expect(problemOf(kind, signStatement(key, kind, value))).toBe('bad_schema');
  });

  test('signed for another purpose, or without a purpose, is refused', () => {
    for (const other of kinds) {
      if (other !== kind) expect(problemOf(kind, signStatement(key, other, sample))).toBe('bad_signature');
    }
    const payload = canonicalJsonBytes(sample);
    const signed = (bytes: Uint8Array) => ({ payload: toBase64(payload), signature: toBase64(signDer(key, bytes)) });
    const text = canonicalJson(sample);
    for (const prefix of ['', `inference/${kind}/v1`, `inference/${kind}/v2\0`, `inference/${kind}/v1\0\0`, `Inference/${kind}/v1\0`]) {
      expect(problemOf(kind, signed(concatBytes(utf8(prefix), payload)))).toBe('bad_signature');
    }
    expect(problemOf(kind, signed(utf8(`inference/${kind}/v1\0${text}`)))).toBeNull();
  });

  test('by another key is refused, and so is a malformed key', () => {
    expect(problemOf(kind, statement, generateEnclaveKey().x963)).toBe('bad_signature');
    expect(problemOf(kind, statement, key.x963.subarray(1))).toBe('bad_signature');
  });

  test('that is not canonical JSON is refused although it is signed', () => {
    const text = canonicalJson(sample);
    const variants = [
      ` ${text}`,
      `${text}\n`,
      text.replace(':1', ': 1'),
      text.replace('{', '{"v":1,'),
      text.replace(/}$/, ',"v":1}'),
      text.replace(':1', ':1.0'),
      text.replace(':1', ':1e0'),
      text.replace('"v"', '"\\u0076"'),
      `\ufeff${text}`,
      JSON.stringify(Object.fromEntries(Object.entries(sample).reverse())),
      text.slice(1),
      '',
    ];
    for (const variant of variants) {
      expect(variant).not.toBe(text);
      expect(problemOf(kind, signPayload(key, kind, utf8(variant))), variant).toBe('not_canonical');
    }
    expect(problemOf(kind, signPayload(key, kind, Uint8Array.of(0xff)))).toBe('not_canonical');
    const nested = '['.repeat(20_000) + ']'.repeat(20_000);
    expect(problemOf(kind, signPayload(key, kind, utf8(nested)))).toMatch(/not_canonical|bad_schema/);
  });

  test('may carry members of the future', () => {
    expect(problemOf(kind, signStatement(key, kind, { ...sample, zz_future: { a: [1] } }))).toBeNull();
  });

  test('that says which members must be understood is refused by who does not know one of them', () => {
    const critical = (crit: JsonValue, members: Members = {}) => problemOf(kind, signStatement(key, kind, { ...sample, ...members, crit }));
    expect(critical(['zz_future'], { zz_future: 1 })).toBe('unknown_critical');
    expect(critical(['v', 'zz_future'], { zz_future: 1 })).toBe('unknown_critical');
    expect(critical(['v'])).toBeNull();
    for (const crit of [[], ['v', 'v'], [1], 'v', null, {}, ['zz_absent'], ['crit'], ['__proto__'], ['toString']] as JsonValue[]) {
      expect(critical(crit), JSON.stringify(crit)).toBe('bad_schema');
    }
  });

  test('in base64 that is not canonical is refused', () => {
    const unpadded = statement.payload.replace(/=+$/, '');
    const url = statement.signature.replaceAll('+', '-').replaceAll('/', '_');
    for (const payload of [`${statement.payload}\n`, ` ${statement.payload}`, `${unpadded}====`, '*']) {
      expect(problemOf(kind, { ...statement, payload })).toBe('bad_encoding');
    }
    if (url !== statement.signature) expect(problemOf(kind, { ...statement, signature: url })).toBe('bad_encoding');
    // Two-digit tail with nonzero unused bits.
    expect(problemOf(kind, { ...statement, signature: 'AB==' })).toBe('bad_encoding');
  });

  test('with a signature that is not strict DER is refused', () => {
    const der = fromBase64(statement.signature);
    const ber = Uint8Array.from([0x30, 0x81, der.length - 2, ...der.subarray(2)]);
    for (const signature of [ber, Uint8Array.from([...der, 0]), new Uint8Array(0), new Uint8Array(64).fill(1)]) {
      expect(problemOf(kind, { ...statement, signature: toBase64(signature) })).toBe('bad_signature');
    }
  });
});

test('the bytes of a statement begin with its kind and a zero byte', () => {
  expect(statementBytes('receipt', utf8('{}'))).toEqual(utf8('inference/receipt/v1\0{}'));
  expect(SignedStatementSchema.required).toEqual(['payload', 'signature']);
});
