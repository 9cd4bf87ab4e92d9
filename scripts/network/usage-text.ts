/** Usage text that a start script prints when its network is ready. */
import { resolve } from 'node:path';
import { demoOf, type RunningNetwork } from './demo-file.js';

/** First steps with a running network. `dataDir`: absolute; `headline`: running processes; `more`: further lines about addresses. */
export function usageText(network: RunningNetwork, dataDir: string, headline: string, more = ''): string {
  const { text_model: textModel, image_model: imageModel, vision_model: visionModel } = demoOf(network);
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

${imageModel === undefined ? '' : drawingText(network, imageModel)}${
  imageModel === undefined || visionModel === undefined ? '' : lookingText(network, imageModel, visionModel)
}Verify an answer with curl and openssl:  ${verifyCommand(dataDir)}
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

/** The picture travels through a pipe, because a command line holds at most 128 KiB per argument. */
function lookingText({ baseUrl, apiKey }: RunningNetwork, imageModel: string, visionModel: string): string {
  const drawing = { model: imageModel, prompt: 'two orange triangles on a purple background', size: 'auto', response_format: 'b64_json' };
  const question = { type: 'text', text: 'What is in this picture?' };
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,%s' } };
  const body = { model: visionModel, temperature: 0, messages: [{ role: 'user', content: [picture, question] }] };
  return `Draw a picture, and ask what is on it:

  curl ${baseUrl}/v1/images/generations --silent \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(drawing)}' |
  node -p 'JSON.parse(require("fs").readFileSync(0)).data[0].b64_json' |
  { read -r image; printf '${JSON.stringify(body)}' "$image"; } |
  curl ${baseUrl}/v1/chat/completions --silent \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d @-

`;
}
