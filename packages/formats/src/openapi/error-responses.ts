/** Documents error responses in OpenAPI: one response per status, with an example per error code. */
import { anthropicError } from '../errors/anthropic-error.js';
import { ERRORS, type ErrorCode } from '../errors/error-table.js';
import { apiError } from '../errors/errors.js';
import { openAiError } from '../errors/open-ai-error.js';

export type ErrorSchemaName = 'OpenAiError' | 'AnthropicError';

const REQUEST_ID = 'req_0123456789abcdef';
type ErrorExampleDetails = Readonly<Partial<Record<ErrorCode, { readonly message?: string; readonly param?: string }>>>;

/** Example details of errors that name a field or contain amounts. */
const EXAMPLE_DETAILS: ErrorExampleDetails = {
  insufficient_quota: { param: 'max_tokens' },
  key_budget_exceeded: {
    message:
      "This request could cost up to $0.054000 (54000 micro-USD) (up to 900 input tokens and 8192 output tokens (max_tokens)). Of this API key's budget of $10.000000 (10000000 micro-USD) per month, $9.980000 (9980000 micro-USD) is spent. The budget resets at 2026-02-01T00:00:00Z. Raise the budget or lower max_tokens.",
  },
  model_not_found: { param: 'model' },
  provider_not_available: { param: 'provider_serial' },
  stale_key: { param: 'recipients' },
};

/** OpenAPI responses for these error codes, by status. `details` overrides message and field of the examples. */
export function documentedErrors(
  codes: readonly ErrorCode[],
  format: ErrorSchemaName = 'OpenAiError',
  details: ErrorExampleDetails = {},
): Readonly<Record<number, object>> {
  const errors = codes.map((code) => {
    const error = apiError(code, { ...EXAMPLE_DETAILS[code], ...details[code] });
    return { code, ...(format === 'OpenAiError' ? openAiError(error) : anthropicError(error, REQUEST_ID)) };
  });
  const statuses = [...new Set(errors.map(({ status }) => status))];
  return Object.fromEntries(
    statuses.map((status) => {
      const matching = errors.filter((error) => error.status === status);
      const examples = Object.fromEntries(
        matching.map(({ code, body }) => [code, { summary: ERRORS[code].message, value: JSON.parse(body) as unknown }]),
      );
      const description = matching.map(({ code }) => `\`${ERRORS[code].code}\``).filter((text, index, all) => all.indexOf(text) === index);
      const schema = { $ref: `#/components/schemas/${format}` };
      return [status, { description: description.join(', '), content: { 'application/json': { schema, examples } } }];
    }),
  );
}
