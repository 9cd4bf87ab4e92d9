/** Policy of a client: the evidence that a provider must have before a request is sealed to its key. */
import { fromBase64OrNull, MAX_E2E_RECIPIENTS, MAX_KEY_LIFETIME_MS } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { Compile } from 'typebox/compile';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

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
   * `enclave`: the machine states that a Secure Enclave holds its key. `maker`: a certificate chain of the manufacturer is bound to
   * the key. `maker+mdm`: device management agrees as well, which only the coordinator states.
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
  /** Minimum number of verified providers of a model. */
  minCandidates: Type.Integer({ minimum: 1, maximum: MAX_E2E_RECIPIENTS }),
  /** Minimum time that a provider has been in the transparency log, in milliseconds. Needs `log: "required"`. */
  minLogAge: milliseconds(365 * DAY_MS),
  /** Time for which a model's providers stay the same, in milliseconds. */
  stickyFor: milliseconds(90 * DAY_MS),
  /** `required`: the keyset must be in the transparency log. */
  log: Type.Union([Type.Literal('off'), Type.Literal('required')]),
};
const PolicySchema = Type.Partial(Type.Object(members), { additionalProperties: false });
const validator = Compile(PolicySchema);

/** Input of a client, as in a policy file. All members are optional. */
export type PolicyInput = Static<typeof PolicySchema>;

type Filled = Required<Omit<PolicyInput, 'anchors' | 'enclaveKeys' | 'serials'>>;
export type Policy = Readonly<Filled & Pick<PolicyInput, 'anchors' | 'enclaveKeys' | 'serials'>>;

export const DEFAULT_POLICY: Readonly<Filled> = {
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

/** A policy that names no valid value for a member. */
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

/** Validates a policy and fills in the defaults. Throws {@link PolicyError}. */
export function parsePolicy(input: unknown = {}): Policy {
  if (!validator.Check(input)) {
    const [first] = validator.Errors(input);
    const unknown = unknownMember(input);
    if (unknown !== null) throw new PolicyError(unknown, 'is no member of a policy');
    throw new PolicyError(first?.instancePath.slice(1).replaceAll('/', '.') || 'policy', first?.message ?? 'is not valid');
  }
  const policy = { ...DEFAULT_POLICY, ...input };
  if (policy.minCandidates > policy.candidates) throw new PolicyError('minCandidates', `is more than candidates (${policy.candidates})`);
  if (policy.minLogAge > 0 && policy.log !== 'required') throw new PolicyError('minLogAge', 'needs log: "required"');
  policy.anchors?.forEach(({ name, publicKey }, index) => {
    if (fromBase64OrNull(name) === null) throw new PolicyError(`anchors.${index}.name`, 'is not canonical base64');
    if (fromBase64OrNull(publicKey)?.length !== 97) throw new PolicyError(`anchors.${index}.publicKey`, 'is not base64 of 97 bytes');
  });
  return policy;
}

function unknownMember(input: unknown): string | null {
  if (typeof input !== 'object' || input === null) return null;
  return Object.keys(input).find((name) => !Object.hasOwn(members, name)) ?? null;
}
