/** Text that `npm start` and `npm run cluster` print when the network is ready: addresses, key and first requests. */
import { resolve } from 'node:path';
import { demoOf, type RunningNetwork } from './demo-file.js';

/**
 * @param dataDir Absolute path.
 * @param headline First line, a summary of the running processes.
 * @param more Further lines with addresses.
 */
export function usageText(network: RunningNetwork, dataDir: string, headline: string, more = ''): string {
  const { text_model: textModel, image_model: imageModel, vision_model: visionModel } = demoOf(network);
  const body = { model: textModel, temperature: 0, messages: [{ role: 'user', content: 'What is the capital of France?' }] };
  return `
${headline}

  console  ${network.baseUrl}/
  address  ${network.baseUrl}
  key      ${network.apiKey}
${more}
Open the console in a browser to sign up and to try a model in the playground. E-mails, such as for a new password, are written to
the coordinator's log.

Send a chat request:

  curl ${network.baseUrl}/v1/chat/completions \\
    -H "Authorization: Bearer ${network.apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(body)}'

${imageModel === undefined ? '' : imageText(network, imageModel)}${
  imageModel === undefined || visionModel === undefined ? '' : visionText(network, imageModel, visionModel)
}Verify an answer with curl and openssl:  ${verifyCommand(dataDir)}
Logs: ${network.logDir}    Ctrl-C ends everything.
`;
}

/** `verify-response.sh` reads address and key from `demo.json` in DATA_DIR, by default `.data`. */
function verifyCommand(dataDir: string): string {
  const script = 'scripts/verify-response.sh';
  if (dataDir === resolve('.data')) return script;
  const quoted = /^[\w./-]+$/.test(dataDir) ? dataDir : `'${dataDir.replaceAll("'", "'\\''")}'`;
  return `DATA_DIR=${quoted} ${script}`;
}

function imageText({ baseUrl, apiKey }: RunningNetwork, model: string): string {
  const body = { model, prompt: 'a red circle on a blue background', size: 'auto' };
  return `Generate an image (the response contains a URL, valid for one hour):

  curl ${baseUrl}/v1/images/generations \\
    -H "Authorization: Bearer ${apiKey}" \\
    -H "Content-Type: application/json" \\
    -d '${JSON.stringify(body)}'

`;
}

/** Passes the image through a pipe, because Linux limits one command-line argument to 128 KiB. */
function visionText({ baseUrl, apiKey }: RunningNetwork, imageModel: string, visionModel: string): string {
  const drawing = { model: imageModel, prompt: 'two orange triangles on a purple background', size: 'auto', response_format: 'b64_json' };
  const question = { type: 'text', text: 'What is in this picture?' };
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,%s' } };
  const body = { model: visionModel, temperature: 0, messages: [{ role: 'user', content: [picture, question] }] };
  return `Generate an image, and ask a vision model about it:

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
