/** Paths beside inference for the OpenAPI document. Responses may contain further members. */

import { LeaderboardQuerySchema, STATS_SCHEMAS, TotalsQuerySchema } from '@inference/formats';
import { AttestationFeedSchema, MachineEarningsSchema, ProviderStatusSchema } from '@inference/protocol';
import Type, { type TObject } from 'typebox';
import { PAYMENT_SCHEMAS, UsageQuerySchema } from '../billing/payment-schemas.js';
import { EarningsQuerySchema } from '../billing/provider-earnings.js';
import { CATALOGUE_SCHEMAS } from '../inference/catalogue-schemas.js';
import { MODEL_SCHEMAS, ModelListQuerySchema } from '../inference/model-schemas.js';
import { SignedReceiptSchema } from '../inference/receipts.js';
import { AttestationQuerySchema } from '../providers/attestation.js';

export const SCHEMAS = {
  ...MODEL_SCHEMAS,
  SignedReceipt: SignedReceiptSchema,
  Attestations: AttestationFeedSchema,
  ProviderStatus: ProviderStatusSchema,
  MachineEarnings: MachineEarningsSchema,
  Health: Type.Object({ status: Type.Literal('ok') }),
  Service: Type.Object({ service: Type.String() }),
  ...CATALOGUE_SCHEMAS,
  ...PAYMENT_SCHEMAS,
  ...STATS_SCHEMAS,
};

export const PATHS = {
  '/v1/models': get({
    summary: 'Models that are served now, 1000 at most. With limit, after_id or before_id, one page of them.',
    answer: 'ModelList',
    query: ModelListQuerySchema,
  }),
  '/v1/models/{id}': get({
    summary: 'One model that is served now, with its demand. Its id may hold slashes.',
    answer: 'Model',
    parameter: 'id',
  }),
  '/v1/images/files/{file}': {
    get: {
      summary: 'An image, until its time is over. Whoever has the address may fetch it, whole or in part.',
      security: [],
      parameters: [
        { name: 'file', in: 'path', required: true, schema: { type: 'string' } },
        { name: 'Range', in: 'header', schema: { type: 'string' } },
      ],
      responses: {
        200: { description: 'The image.', content: { 'image/png': {}, 'image/jpeg': {}, 'image/webp': {} } },
        206: { description: 'A part of it.', content: { 'image/png': {}, 'image/jpeg': {}, 'image/webp': {} } },
        304: { description: 'It is still the one that the client has.' },
        404: { description: 'There never was such an image.', content: json(reference('OpenAiError')) },
        410: { description: 'Its time is over.', content: json(reference('OpenAiError')) },
        416: { description: 'The range lies outside of the image.', content: json(reference('OpenAiError')) },
      },
    },
  },
  '/v1/receipts/{job_id}': get({ summary: 'The signed receipt of a finished job.', answer: 'SignedReceipt', parameter: 'job_id' }),
  '/v1/payments/balance': get({ summary: 'The balance of the account.', answer: 'Balance' }),
  '/v1/payments/usage': get({
    summary: 'What the jobs of the account have cost, the newest first. With format=csv, or Accept: text/csv, the same as a table.',
    answer: 'Usage',
    query: UsageQuerySchema,
    otherType: 'text/csv',
  }),
  '/v1/prices': get({ summary: 'Prices of the models that are served now.', answer: 'Prices', isPublic: true }),
  '/v1/catalogue': get({ summary: 'Models that the operator knows, with their files and prices.', answer: 'Catalogue', isPublic: true }),
  '/v1/stats': get({ summary: 'Statistics of the network, at most a minute old.', answer: 'Stats', isPublic: true }),
  '/v1/leaderboard': get({
    summary: 'Providers by what they did in a window, at most five minutes old.',
    answer: 'Leaderboard',
    query: LeaderboardQuerySchema,
    isPublic: true,
  }),
  '/v1/network/totals': get({
    summary: 'What the network did in a window, at most a minute old.',
    answer: 'Totals',
    query: TotalsQuerySchema,
    isPublic: true,
  }),
  '/v1/providers/attestation': get({
    summary: 'Evidence for every connected provider, or for one.',
    answer: 'Attestations',
    query: AttestationQuerySchema,
    isPublic: true,
  }),
  '/v1/providers/me': get({
    summary: 'What a provider is told about itself. The bearer is the token that its session was told, not an API key.',
    answer: 'ProviderStatus',
  }),
  '/v1/machine/earnings': get({
    summary: 'What a machine earned for the account that it is linked to. The bearer is the token of its sign-in, not an API key.',
    answer: 'MachineEarnings',
    query: EarningsQuerySchema,
  }),
  '/health': get({ summary: 'Whether the service runs.', answer: 'Health', isPublic: true }),
  '/': get({ summary: 'Which service this is.', answer: 'Service', isPublic: true }),
  '/openapi.json': get({ summary: 'This document.', answer: null, isPublic: true }),
};

function get(operation: {
  readonly summary: string;
  /** Null: any object. */
  readonly answer: keyof typeof SCHEMAS | null;
  readonly parameter?: string;
  readonly query?: TObject;
  /** Further content type of the response. */
  readonly otherType?: string;
  /** The route takes no key. */
  readonly isPublic?: boolean;
}) {
  const { summary, answer, parameter, query, otherType, isPublic = false } = operation;
  const schema = answer === null ? { type: 'object' } : reference(answer);
  const error = { description: 'An error.', content: json(reference('OpenAiError')) };
  return {
    get: {
      summary,
      ...(isPublic ? { security: [] } : {}),
      ...(parameter === undefined ? {} : { parameters: [{ name: parameter, in: 'path', required: true, schema: { type: 'string' } }] }),
      ...(query === undefined
        ? {}
        : { parameters: Object.entries(query.properties).map(([name, schema]) => ({ name, in: 'query', schema })) }),
      responses: {
        200: {
          description: 'The answer.',
          content: { ...json(schema), ...(otherType === undefined ? {} : { [otherType]: { schema: { type: 'string' } } }) },
        },
        ...(query === undefined ? {} : { 400: error }),
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
