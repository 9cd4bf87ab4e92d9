/**
 * Schemas of payments and prices (spec: usage entry, balance). Descriptions of parameters complete error messages of the form "<name> must
 * be <description>".
 */
import Type, { type Static } from 'typebox';

const count = Type.Integer({ minimum: 0 });
const usd = Type.String({ pattern: '^-?\\d+\\.\\d{6}$', description: 'USD with six decimal places.' });
const microUsd = Type.Integer({ description: 'Micro-USD: 1 USD is 1,000,000.' });

/** Maximum and default entries per page. */
export const MAX_USAGE_LIMIT = 1000;
const TIME_PATTERN = '^\\d{4}-\\d\\d-\\d\\d(?:T\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d{1,3})?)?(?:Z|[+-]\\d\\d:\\d\\d))?$';
export const TIME_DESCRIPTION = 'a date such as 2026-01-31 or a time such as 2026-01-31T12:00:00Z';

export const UsageQuerySchema = Type.Object({
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_USAGE_LIMIT, description: `a whole number from 1 to ${MAX_USAGE_LIMIT}` })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'the next_cursor of an earlier page' })),
  from: Type.Optional(Type.String({ pattern: TIME_PATTERN, description: TIME_DESCRIPTION })),
  to: Type.Optional(Type.String({ pattern: TIME_PATTERN, description: TIME_DESCRIPTION })),
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'a string of 1 to 256 characters' })),
  format: Type.Optional(Type.Enum(['json', 'csv'], { description: 'json or csv' })),
});

const Balance = Type.Object({
  balance_micro_usd: microUsd,
  balance_usd: usd,
  withdrawable_micro_usd: Type.Integer({ minimum: 0, description: 'Matured earnings, in micro-USD.' }),
  withdrawable_usd: usd,
  pending_micro_usd: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Earnings before maturity. Absent if zero, as are the next two members.' }),
  ),
  pending_usd: Type.Optional(usd),
  maturing: Type.Optional(
    Type.Array(Type.Object({ at: Type.String({ description: 'ISO 8601, UTC.' }), amount_micro_usd: count }), {
      description: 'Maturity times of the pending earnings, earliest first.',
    }),
  ),
});

const UsageEntry = Type.Object({
  request_id: Type.String({ description: 'Job id, as in X-Inference-Job-ID of streams.' }),
  model: Type.String(),
  prompt_tokens: count,
  completion_tokens: count,
  images: Type.Optional(Type.Integer({ minimum: 1, description: 'Number of images; only for image models.' })),
  cost_micro_usd: count,
  timestamp: Type.String({ description: 'Completion time of the request, ISO 8601, UTC.' }),
});
export type UsageEntry = Static<typeof UsageEntry>;

const Usage = Type.Object({
  usage: Type.Array(UsageEntry, { description: 'Newest first.' }),
  next_cursor: Type.Optional(
    Type.Union([Type.String(), Type.Null()], {
      description:
        'Cursor of the next page; null on the last page. Only with limit or cursor in the request. The Link header points to the same page.',
    }),
  ),
});

/** Schema of a price in micro-USD. The maxima catch typing errors: 10,000 USD per million tokens, 1000 USD per image. */
const rate = (max: number) => Type.Integer({ minimum: 0, maximum: max, description: `a whole number of micro-USD from 0 to ${max}` });
const perMillion = rate(10_000_000_000);
const rates = { prompt_per_million: perMillion, completion_per_million: perMillion, per_image: rate(1_000_000_000) };
/** Rate of prompt tokens from the prefix cache. */
const cached_per_million = perMillion;

/** Body of a new price. All rates except that of cached tokens are required. Unknown members are rejected. */
export const PriceChangeSchema = Type.Object(
  {
    ...rates,
    cached_per_million: Type.Optional(cached_per_million),
    valid_from: Type.Optional(Type.String({ pattern: TIME_PATTERN, description: TIME_DESCRIPTION })),
  },
  {
    additionalProperties: false,
    description: 'an object with prompt_per_million, completion_per_million and per_image, and perhaps cached_per_million and valid_from',
  },
);

const Prices = Type.Object({
  object: Type.Literal('list'),
  currency: Type.Literal('micro_usd'),
  data: Type.Array(Type.Object({ model: Type.String(), ...rates, cached_per_million })),
});

export const PAYMENT_SCHEMAS = { Balance, Usage, Prices };
