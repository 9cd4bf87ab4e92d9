/** Clients that read slowly get the whole of a large response. Clients that stop reading are disconnected, which frees memory. */
import http from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { addressOf, listenLocally } from '../../../../../test/support/local-server.js';
import { ResponseDrain } from '../../../src/routes/plugins/connections/response-drain.js';
import { type Harness, MODEL, startHarness, until } from '../../support/harness.js';
import type { ScriptedJob } from '../../support/scripted-provider.js';

const PIECE = 250_000;
/** Enough that the response far exceeds the socket buffers of the operating system. */
const PIECES = 110;
/** The response is a JSON object with one long text. */
const [START, END] = ['{"object":"chat.completion","text":"', '"}'];
const RESPONSE_BYTES = START.length + PIECES * PIECE + END.length;

let harness: Harness | null = null;
afterEach(() => harness?.close());

/** Sends a response of about 27 MB. */
async function answerAtLength(job: ScriptedJob): Promise<void> {
  job.accept();
  job.push(Buffer.from(START));
  for (let index = 0; index < PIECES; index++) await job.pushWithinCredit(Buffer.alloc(PIECE, 'x'));
  await job.pushWithinCredit(Buffer.from(END));
  job.push(new Uint8Array(), true);
  job.complete();
}

/** Sends a request. The response stays unread until the test reads it. */
function ask(url: string, body: string | null = null, headers: Record<string, string> = {}): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: body === null ? 'GET' : 'POST', headers, agent: false }, resolve);
    request.on('error', reject);
    request.end(body);
  });
}

function askForMuch({ url, apiKey }: Harness): Promise<http.IncomingMessage> {
  const body = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hi' }] });
  return ask(`${url}/v1/chat/completions`, body, { 'x-api-key': apiKey });
}

async function bytesIn(response: http.IncomingMessage, everyMs: number): Promise<number> {
  let bytes = 0;
  let due = PIECE;
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length;
    if (bytes < due) continue;
    due += PIECE;
    await pause(everyMs);
  }
  return bytes;
}

it('a client that reads slowly gets every byte of a large response, beyond the drain timeout', async () => {
  harness = await startHarness({ jobTimings: { clientDrainMs: 4000 } });
  await harness.provider({ onJob: answerAtLength });
  const response = await askForMuch(harness);
  expect(await bytesIn(response, 60)).toBe(RESPONSE_BYTES);
});

it('a shutdown lets a client read the rest of a paid response', async () => {
  const ending = await startHarness();
  await ending.provider({ onJob: answerAtLength });
  const response = await askForMuch(ending);
  await until(() => ending.jobLines().length === 1);
  const closed = ending.app.close(60_000);
  // Longer than a shutdown waits for the last responses.
  await pause(1500);
  expect(await bytesIn(response, 0)).toBe(RESPONSE_BYTES);
  await closed;
});

it('a client that stops reading any response is disconnected', async () => {
  const answers = new ResponseDrain(200);
  const served: http.ServerResponse[] = [];
  const server = http.createServer((_request, response) => {
    served.push(response);
    response.end(Buffer.alloc(PIECES * PIECE));
  });
  answers.attach(server);
  await listenLocally(server);
  const response = await ask(`${addressOf(server)}/`);
  response.on('error', () => {});
  await until(() => served[0]?.destroyed === true);
  await answers.whenDrained();
  response.destroy();
  await new Promise((resolve) => server.close(resolve));
});
