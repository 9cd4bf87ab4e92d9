/** What the addresses beside inference answer, for the API description. Members that are not listed may follow. */
import { ReceiptSchema, SignedStatementSchema } from '@inference/protocol';
import Type, { type TProperties } from 'typebox';

const count = Type.Integer({ minimum: 0 });
const trustLevel = Type.Union([Type.Literal('self_signed'), Type.Literal('hardware')]);
const flags = (...names: readonly string[]): TProperties => Object.fromEntries(names.map((name) => [name, Type.Boolean()]));
const texts = (...names: readonly string[]): TProperties => Object.fromEntries(names.map((name) => [name, Type.String()]));

const Model = Type.Object({
  id: Type.String(),
  object: Type.Literal('model'),
  created: Type.Integer({ description: 'Seconds since 1970.' }),
  owned_by: Type.String(),
  metadata: Type.Object({
    ...texts('model_type', 'quantization', 'display_name'),
    provider_count: count,
    attested_providers: count,
    trust_level: trustLevel,
  }),
});

const SignedReceipt = Type.Object({
  object: Type.Literal('inference.receipt'),
  job_id: Type.String(),
  receipt: Type.String({ description: 'base64url of the canonical JSON of the claims.' }),
  receipt_signature: Type.String({ description: 'Base64 of the DER signature over "inference/receipt/v1", a zero byte, and the receipt.' }),
  response_hash: Type.String({ description: 'Hexadecimal SHA-256 of the response.' }),
  se_signature: Type.String({ description: 'Base64 of the DER signature over the digits of the hash.' }),
  claims: ReceiptSchema,
});

const AttestationRecord = Type.Object({
  ...texts('provider_id', 'status', 'chip_name', 'hardware_model', 'serial_number', 'se_public_key', 'key_protection'),
  trust_level: trustLevel,
  memory_gb: count,
  gpu_cores: count,
  models: Type.Array(Type.String()),
  ...flags('secure_enclave', 'sip_enabled', 'secure_boot_enabled', 'authenticated_root_enabled', 'attested'),
  ...flags('mdm_verified', 'acme_verified', 'mda_verified'),
  attestation_statement: SignedStatementSchema,
  key_statement: Type.Union([SignedStatementSchema, Type.Null()]),
});

export const SCHEMAS = {
  Model,
  ModelList: Type.Object({ object: Type.Literal('list'), data: Type.Array(Model) }),
  SignedReceipt,
  Attestations: Type.Object({
    providers: Type.Array(AttestationRecord),
    ...texts('apple_root_ca_url', 'apple_enterprise_root_ca', 'verification_instructions'),
  }),
  Health: Type.Object({ status: Type.Literal('ok') }),
  Service: Type.Object({ service: Type.String() }),
};

export const PATHS = {
  '/v1/models': get({ summary: 'Models that are served now.', answer: 'ModelList' }),
  '/v1/models/{id}': get({ summary: 'One model that is served now. Its id may hold slashes.', answer: 'Model', parameter: 'id' }),
  '/v1/receipts/{job_id}': get({ summary: 'The signed receipt of a finished job.', answer: 'SignedReceipt', parameter: 'job_id' }),
  '/v1/providers/attestation': get({ summary: 'Evidence for every connected provider.', answer: 'Attestations', isPublic: true }),
  '/health': get({ summary: 'Whether the service runs.', answer: 'Health', isPublic: true }),
  '/': get({ summary: 'Which service this is.', answer: 'Service', isPublic: true }),
  '/openapi.json': get({ summary: 'This document.', answer: null, isPublic: true }),
};

function get(operation: {
  readonly summary: string;
  /** Null: any object. */
  readonly answer: keyof typeof SCHEMAS | null;
  readonly parameter?: string;
  /** It takes no key. */
  readonly isPublic?: boolean;
}) {
  const { summary, answer, parameter, isPublic = false } = operation;
  const schema = answer === null ? { type: 'object' } : reference(answer);
  const error = { description: 'An error.', content: json(reference('OpenAiError')) };
  return {
    get: {
      summary,
      ...(isPublic ? { security: [] } : {}),
      ...(parameter === undefined ? {} : { parameters: [{ name: parameter, in: 'path', required: true, schema: { type: 'string' } }] }),
      responses: {
        200: { description: 'The answer.', content: json(schema) },
        ...(isPublic ? {} : { 401: error, 403: error }),
        ...(parameter === undefined ? {} : { 404: error }),
      },
    },
  };
}

function reference(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}

function json(schema: object) {
  return { 'application/json': { schema } };
}
