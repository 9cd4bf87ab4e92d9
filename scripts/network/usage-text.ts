/** Usage text that a start script prints when its network is ready. */
import { resolve } from 'node:path';
import { demoOf, type RunningNetwork } from './demo-file.js';

/** First steps with a running network. `dataDir`: absolute; `headline`: running processes; `more`: further lines about addresses. */
export function usageText(network: RunningNetwork, dataDir: string, headline: string, more = ''): string {
  const { text_model: textModel, image_model: imageModel } = demoOf(network);
  const body = { model: textModel, temperature: 0, messages: [{ role: 'user', content: 'What is the capital of France?' }] };
  return `
${headline}

  console  ${network.baseUrl}/
  address  ${network.baseUrl}
  key      ${network.apiKey}
${more}
Open the console in a browser to sign up, look around and try a model. Mails, such as for a new password, are lines of the
coordinator's log here.

Ask it something:

  curl ${network.baseUrl}/v1/chat/completions \\
    -H "Authorization: Bearer ${network.apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(body)}'

${imageModel === undefined ? '' : drawingText(network, imageModel)}Verify an answer with curl and openssl:  ${verifyCommand(dataDir)}
Logs: ${network.logDir}    Ctrl-C ends everything.
`;
}

/** `verify-response.sh` reads address and key from the data directory; default `.data`. */
function verifyCommand(dataDir: string): string {
  const script = 'scripts/verify-response.sh';
  if (dataDir === resolve('.data')) return script;
  const quoted = /^[\w./-]+$/.test(dataDir) ? dataDir : `'${dataDir.replaceAll("'", "'\\''")}'`;
  return `DATA_DIR=${quoted} ${script}`;
}

function drawingText({ baseUrl, apiKey }: RunningNetwork, model: string): string {
  const body = { model, prompt: 'a red circle on a blue background', size: 'auto' };
  return `Have it draw something (the answer holds an address that lives for an hour):

  curl ${baseUrl}/v1/images/generations \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(body)}'

`;
}
