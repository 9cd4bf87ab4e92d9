/** Policy of a client: the evidence that a provider must have before a request is sealed to its key. */
import {
  fromBase64OrNull,
  LogFormatError,
  lazyValidator,
  MAX_E2E_RECIPIENTS,
  MAX_KEY_LIFETIME_MS,
  type NoteSignatureType,
  parseNoteKey,
  toHex,
} from '@inference/protocol';
import { sha256 } from '@noble/hashes/sha2.js';
import Type, { type Static } from 'typebox';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const MAX_WITNESSES = 16;

const milliseconds = (maximum: number) => Type.Integer({ minimum: 0, maximum });

const AnchorSchema = Type.Object(
  {
    /** base64 of the DER of the name. */
    name: Type.String({ minLength: 1, maxLength: 4096 }),
    /** base64 of the 97-byte uncompressed P-384 point. */
    publicKey: Type.String({ minLength: 1, maxLength: 256 }),
  },
  { additionalProperties: false },
);

const members = {
  /**
   * `enclave`: the machine states that a Secure Enclave holds its key. `maker`: a manufacturer's certificate chain is bound to the
   * key.
   *
   * `maker+mdm`: device management agrees too, which only the coordinator states.
   */
  evidence: Type.Union([Type.Literal('enclave'), Type.Literal('maker'), Type.Literal('maker+mdm')]),
  /** Accepts simulated machines, whose evidence proves nothing. For development. */
  allowSimulated: Type.Boolean(),
  /** Roots of certificate chains. Default: the manufacturer's, pinned in this package. */
  anchors: Type.Array(AnchorSchema, { minItems: 1, maxItems: 8 }),
  /** Maximum age of a sealing key, in milliseconds. */
  maxKeyAge: milliseconds(MAX_KEY_LIFETIME_MS),
  /** Maximum age of the provider's newest answered challenge, in milliseconds. */
  maxChallengeAge: milliseconds(20 * MINUTE_MS),
  /** Maximum age of the provider's device certificate, in milliseconds. */
  maxChainAge: milliseconds(30 * DAY_MS),
  /** Lowercase hexadecimal SHA-256 of the enclave keys (x963) that are allowed. Default: any. */
  enclaveKeys: Type.Array(Type.String({ pattern: '^[0-9a-f]{64}$' }), { minItems: 1, maxItems: 4096 }),
  /** Serial numbers of the machines that are allowed. Default: any. */
  serials: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { minItems: 1, maxItems: 4096 }),
  /** Number of providers that each request is sealed to. */
  candidates: Type.Integer({ minimum: 1, maximum: MAX_E2E_RECIPIENTS }),
  /** Minimum number of verified providers of a model. With fewer, requests are refused. */
  minCandidates: Type.Integer({ minimum: 1, maximum: MAX_E2E_RECIPIENTS }),
  /** Minimum time that a provider has been in the transparency log, in milliseconds. Needs `log: "required"`. */
  minLogAge: milliseconds(365 * DAY_MS),
  /** Time for which a model's providers stay the same, in milliseconds. */
  stickyFor: milliseconds(90 * DAY_MS),
  /** `required`: keyset and chosen providers must be in the transparency log, and checkpoints that providers report must agree with it. */
  log: Type.Union([Type.Literal('off'), Type.Literal('required')]),
  /** Verifier key of the log (C2SP signed-note), from `/e2e/log/key`. */
  logKey: Type.String({ minLength: 1, maxLength: 1024 }),
  /** Verifier keys of witnesses, type cosignature/v1. Default: none. */
  logWitnesses: Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), { minItems: 1, maxItems: MAX_WITNESSES }),
  /** Minimum number of cosignatures by these witnesses. Default: the majority. */
  logQuorum: Type.Integer({ minimum: 1, maximum: MAX_WITNESSES }),
};
const PolicySchema = Type.Partial(Type.Object(members), { additionalProperties: false });
const validator = lazyValidator(PolicySchema);

/** Input of a client, as in a policy file. All members are optional; all ages and times are in milliseconds. */
export type PolicyInput = Static<typeof PolicySchema>;

type WithoutDefault = 'anchors' | 'enclaveKeys' | 'serials' | 'logKey' | 'logWitnesses' | 'logQuorum';
type Defaults = Required<Omit<PolicyInput, WithoutDefault>>;
/** Validated policy with its defaults; ages and times in milliseconds. */
export type Policy = Readonly<Defaults & Pick<PolicyInput, WithoutDefault>>;

/** Defaults; ages and times in milliseconds. Some members of {@link PolicyInput} have none. */
export const DEFAULT_POLICY: Readonly<Defaults> = {
  evidence: 'maker',
  allowSimulated: false,
  maxKeyAge: MAX_KEY_LIFETIME_MS,
  maxChallengeAge: 20 * MINUTE_MS,
  maxChainAge: 30 * DAY_MS,
  candidates: 3,
  minCandidates: 1,
  minLogAge: 0,
  stickyFor: 7 * DAY_MS,
  log: 'off',
};

/** Invalid policy: names the member and the reason. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';

  constructor(
    /** Path of the member, such as `candidates`. */
    readonly field: string,
    reason: string,
  ) {
    super(`policy: ${field} ${reason}`);
  }
}

/** Validates a policy and fills in the defaults, also for members that are `undefined`. Throws {@link PolicyError}. */
export function parsePolicy(input: unknown = {}): Policy {
  if (!validator().Check(input)) {
    const [first] = validator().Errors(input);
    const unknown = unknownMember(input);
    if (unknown !== null) throw new PolicyError(unknown, 'is not a known policy member');
    throw new PolicyError(first?.instancePath.slice(1).replaceAll('/', '.') || 'policy', first?.message ?? 'is not valid');
  }
  // An undefined member must not replace its default, because comparisons with undefined never refuse.
  const definedMembers = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
  const policy: Policy = { ...DEFAULT_POLICY, ...definedMembers };
  if (policy.minCandidates > policy.candidates) throw new PolicyError('minCandidates', `is more than candidates (${policy.candidates})`);
  requireLogMembers(policy);
  policy.anchors?.forEach(({ name, publicKey }, index) => {
    if (fromBase64OrNull(name) === null) throw new PolicyError(`anchors.${index}.name`, 'is not canonical base64');
    if (fromBase64OrNull(publicKey)?.length !== 97) throw new PolicyError(`anchors.${index}.publicKey`, 'is not base64 of 97 bytes');
  });
  return policy;
}

function requireLogMembers({ log, minLogAge, logKey, logWitnesses, logQuorum }: Policy): void {
  const needRequired = { minLogAge: minLogAge || undefined, logKey, logWitnesses, logQuorum };
  for (const [field, value] of Object.entries(needRequired)) {
    if (value !== undefined && log !== 'required') throw new PolicyError(field, 'needs log: "required"');
  }
  for (const [field, value] of Object.entries({ logWitnesses, logQuorum })) {
    if (value !== undefined && logKey === undefined) throw new PolicyError(field, 'needs logKey');
  }
  if (logKey !== undefined) requireNoteKey('logKey', logKey, 'ed25519');
  const keys = (logWitnesses ?? []).map((text, index) => requireNoteKey(`logWitnesses.${index}`, text, 'cosignature'));
  const repeated = keys.findIndex((key, index) => keys.indexOf(key) < index);
  if (repeated >= 0) throw new PolicyError(`logWitnesses.${repeated}`, 'has the same key as another witness');
  if ((logQuorum ?? 0) > keys.length) throw new PolicyError('logQuorum', `is more than the number of logWitnesses (${keys.length})`);
}

/** Returns the public key in hexadecimal. */
function requireNoteKey(field: string, text: string, type: NoteSignatureType): string {
  try {
    const key = parseNoteKey(sha256, text);
    if (key.type === type) return toHex(key.publicKey);
  } catch (error) {
    if (!(error instanceof LogFormatError)) throw error;
    throw new PolicyError(field, `is no verifier key: ${error.message}`);
  }
  throw new PolicyError(field, `is a verifier key of another type than ${type}`);
}

function unknownMember(input: unknown): string | null {
  if (typeof input !== 'object' || input === null) return null;
  return Object.keys(input).find((name) => !Object.hasOwn(members, name)) ?? null;
}
