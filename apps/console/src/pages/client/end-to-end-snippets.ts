/** Code snippets for end-to-end mode: a verified fetch for JavaScript SDKs, and a local proxy for all other programs. */
import { curlSnippet, QUESTION, type Snippet, type SnippetFacts } from './snippets.js';

/** Address and port of the local proxy. */
const PROXY = '127.0.0.1:8086';

export function proxyCommand(base: string): string {
  return `npx --package @inference/client inference-verify proxy --base-url ${base} --listen ${PROXY}`;
}

/** Example requests. All except the first use the proxy. */
export function endToEndSnippets({ base, key, model }: SnippetFacts): readonly [Snippet, ...Snippet[]] {
  const literal = JSON.stringify;
  return [
    {
      id: 'verified-fetch',
      title: 'OpenAI, JavaScript',
      before: 'npm install openai @inference/client',
      code: `import OpenAI from 'openai';
import { createVerifiedFetch, fileStore, verdictOf } from '@inference/client';

const baseURL = '${base}/v1';
// The file keeps the chosen machines between runs.
const store = fileStore('end-to-end.json');
const fetch = createVerifiedFetch({ baseURL, policy: { evidence: 'maker' }, store });
const client = new OpenAI({ baseURL, apiKey: '${key}', fetch });

const { data, response } = await client.chat.completions
  .create({
    model: ${literal(model)},
    messages: [{ role: 'user', content: ${literal(QUESTION)} }],
  })
  .withResponse();
console.log(data.choices[0].message.content);
console.log(verdictOf(response).state);`,
    },
    { ...curlSnippet({ base: `http://${PROXY}`, key, model }), id: 'proxy-curl' },
    {
      id: 'proxy-claude-code',
      title: 'Claude Code',
      before: null,
      code: `ANTHROPIC_BASE_URL=http://${PROXY} \\
ANTHROPIC_API_KEY=${key} \\
ANTHROPIC_MODEL=${model} \\
CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \\
claude`,
    },
  ];
}
