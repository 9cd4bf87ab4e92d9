/**
 * `addExamples` adds request bodies, values of path parameters and curl commands to the OpenAPI document.
 *
 * The commands read base URL and credential from environment variables. Documentation tools display the extension `x-codeSamples`.
 */
import { EXAMPLE_MODEL, IMAGE_PROMPT_EXAMPLES, REQUEST_EXAMPLES } from '@inference/formats';

interface Operation {
  readonly parameters?: readonly { readonly in: string; readonly name: string; example?: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, MediaType>> };
  readonly security?: readonly unknown[];
  'x-codeSamples'?: readonly { readonly lang: 'Shell'; readonly label: string; readonly source: string }[];
}

interface MediaType {
  examples?: Readonly<Record<string, Example>>;
}

interface Example {
  readonly summary: string;
  readonly value: unknown;
}

/** Values of path parameters, by path and name. */
const PATH_EXAMPLES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  '/v1/models/{id}': { id: EXAMPLE_MODEL },
  '/v1/receipts/{job_id}': { job_id: '6f1f1f0e-3c5b-4a8e-9d57-2f6d1b7e0c11' },
  '/v1/images/files/{file}': { file: 'q3Yb0m8xKfW2sVdR7nLtAg.png' },
  '/v1/e2e/records/{record_sha256}': { record_sha256: '3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea' },
};

/** Query strings, by path. */
const QUERY_EXAMPLES: Readonly<Record<string, string>> = {
  '/v1/models': 'limit=20',
  '/v1/payments/usage': 'limit=20',
  '/v1/leaderboard': 'metric=tokens&window=7d',
  '/v1/network/totals': 'window=7d',
  '/v1/machine/earnings': 'days=7&time_zone=UTC',
};

/** Environment variables with the credential, by path, for routes that do not accept an API key. */
const CREDENTIALS: Readonly<Record<string, string>> = { '/v1/machine/earnings': '$MACHINE_TOKEN', '/v1/providers/me': '$SESSION_TOKEN' };

const JSON_TYPE = 'application/json';

/** Changes the operations in place. */
export function addExamples(paths: Readonly<Record<string, object | undefined>>): void {
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, value] of Object.entries(operations ?? {})) {
      const operation = value as Operation;
      for (const parameter of operation.parameters ?? []) {
        const example = parameter.in === 'path' ? PATH_EXAMPLES[path]?.[parameter.name] : undefined;
        if (example !== undefined) parameter.example = example;
      }
      const json = operation.requestBody?.content[JSON_TYPE];
      const examples = json === undefined ? {} : bodyExamples(path);
      if (json !== undefined) json.examples = examples;
      const bodies = Object.values<Example | undefined>(examples);
      operation['x-codeSamples'] = (bodies.length === 0 ? [undefined] : bodies).map((example) => ({
        lang: 'Shell',
        label: example === undefined || example.summary === MAIN_SUMMARY ? 'curl' : `curl: ${example.summary}`,
        source: curlCommand(method, path, operation, example?.value),
      }));
    }
  }
}

const MAIN_SUMMARY = 'A request.';

function bodyExamples(path: string): Readonly<Record<string, Example>> {
  const endpoint = path as keyof typeof REQUEST_EXAMPLES;
  const withImage = IMAGE_PROMPT_EXAMPLES[endpoint];
  return {
    request: { summary: MAIN_SUMMARY, value: REQUEST_EXAMPLES[endpoint] },
    ...(withImage === undefined ? {} : { image: { summary: 'A question about an image.', value: withImage } }),
  };
}

function curlCommand(method: string, path: string, { requestBody, security }: Operation, body: unknown): string {
  const filled = path.replace(/\{(\w+)\}/g, (text, name: string) => PATH_EXAMPLES[path]?.[name] ?? text);
  const query = QUERY_EXAMPLES[path];
  const [type] = Object.keys(requestBody?.content ?? {});
  const lines = [
    `curl "$BASE${filled}${query === undefined ? '' : `?${query}`}"`,
    ...(security?.length === 0 ? [] : [`-H "Authorization: Bearer ${CREDENTIALS[path] ?? '$KEY'}"`]),
    ...(type === undefined ? [] : [`-H "Content-Type: ${type}"`]),
    ...(body === undefined ? [] : [`-d '${JSON.stringify(body)}'`]),
    // Only sealed requests have a body but no example. The client library writes them as files.
    ...(type === undefined || body !== undefined ? [] : [`--data-binary @request.sealed --output answer.sealed`]),
  ];
  if (method !== 'get' && method !== 'post') throw new Error(`no example for ${method} ${path}`);
  return lines.join(' \\\n  ');
}
