/**
 * `ManagementClient`: HTTP client of a NanoMDM server. Queues commands, and sends pushes that make a device fetch them.
 *
 * Every call has a timeout and a maximum response size. Calls are retried only if the server is unreachable or overloaded.
 */
import { setTimeout as pause } from 'node:timers/promises';
import Type, { type Static } from 'typebox';
import { type DeviceCommand, encodeCommand, REQUEST_TYPES } from './commands.js';
import { jsonReader } from './json-reader.js';

type ManagementFailure =
  /** Timeout, or no connection. */
  | 'management_unreachable'
  /** Status 401 or 403: the API key is wrong. */
  | 'management_unauthorized'
  /** Status 404, or the server rejected the command for this device. */
  | 'management_unknown_device'
  /** Status 429 or 5xx at the last attempt. */
  | 'management_unavailable'
  /** Another status, or a response that is too large or malformed. */
  | 'management_bad_answer';

export class ManagementError extends Error {
  constructor(readonly code: ManagementFailure) {
    super(code);
    this.name = 'ManagementError';
  }
}

export interface ManagementClientOptions {
  /** Base URL of the API, such as `https://mdm.example`. */
  readonly url: string;
  readonly apiKey: string;
  /** Timeout of one attempt. Default 10 s. */
  readonly timeoutMs?: number;
  /** Default 3. */
  readonly maxAttempts?: number;
  /** Pause before the first retry. Doubles with each retry, plus up to half at random. Default 0.5 s. */
  readonly firstPauseMs?: number;
  readonly random?: () => number;
  readonly fetch?: typeof fetch;
}

const AnswerSchema = Type.Object({
  status: Type.Record(
    Type.String(),
    Type.Object({
      push_error: Type.Optional(Type.String()),
      push_result: Type.Optional(Type.String()),
      command_error: Type.Optional(Type.String()),
    }),
  ),
  command_uuid: Type.Optional(Type.String()),
  request_type: Type.Optional(Type.String()),
  command_error: Type.Optional(Type.String()),
  push_error: Type.Optional(Type.String()),
});
type Answer = Static<typeof AnswerSchema>;
const readAnswer = jsonReader(AnswerSchema);

const MAX_ANSWER_BYTES = 64 * 1024;
const DEFAULTS = { timeoutMs: 10_000, maxAttempts: 3, firstPauseMs: 500 };

export class ManagementClient {
  readonly #options: ManagementClientOptions & typeof DEFAULTS;
  readonly #authorization: string;

  constructor(options: ManagementClientOptions) {
    this.#options = { ...DEFAULTS, ...options, url: options.url.replace(/\/+$/, '') };
    this.#authorization = `Basic ${Buffer.from(`nanomdm:${options.apiKey}`, 'utf8').toString('base64')}`;
  }

  /** Queues a command for a device and sends a push. `pushed`: whether the push was sent. Throws {@link ManagementError}. */
  async enqueue(deviceId: string, command: DeviceCommand, signal: AbortSignal): Promise<{ readonly pushed: boolean }> {
    const body = encodeCommand(command);
    const answer = await this.#call(`/v1/enqueue/${encodeURIComponent(deviceId)}`, { method: 'PUT', body }, signal);
    if (answer.command_error !== undefined || answer.status[deviceId]?.command_error !== undefined) {
      throw new ManagementError('management_unknown_device');
    }
    if (answer.command_uuid !== command.uuid || answer.request_type !== REQUEST_TYPES[command.kind]) {
      throw new ManagementError('management_bad_answer');
    }
    return { pushed: wasPushed(answer, deviceId) };
  }

  /** Sends a push without a command. Throws {@link ManagementError}. */
  async push(deviceId: string, signal: AbortSignal): Promise<{ readonly pushed: boolean }> {
    const answer = await this.#call(`/v1/push/${encodeURIComponent(deviceId)}`, { method: 'PUT' }, signal);
    return { pushed: wasPushed(answer, deviceId) };
  }

  async #call(path: string, init: { method: string; body?: string }, signal: AbortSignal): Promise<Answer> {
    const { maxAttempts, firstPauseMs, random = Math.random } = this.#options;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#fetchOnce(path, init, signal);
      } catch (error) {
        if (!(error instanceof ManagementError) || !isRetryable(error.code) || attempt >= maxAttempts || signal.aborted) throw error;
      }
      await pause(firstPauseMs * 2 ** (attempt - 1) * (1 + random() / 2), undefined, { signal }).catch(() => undefined);
    }
  }

  async #fetchOnce(path: string, init: { method: string; body?: string }, signal: AbortSignal): Promise<Answer> {
    const { url, timeoutMs, fetch: request = fetch } = this.#options;
    let response: Response;
    let text: string;
    try {
      response = await request(url + path, {
        ...init,
        headers: { authorization: this.#authorization, 'content-type': 'application/xml' },
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      text = await boundedText(response);
    } catch (error) {
      if (error instanceof ManagementError) throw error;
      throw new ManagementError('management_unreachable');
    }
    const failure = failureOf(response.status);
    if (failure !== null) throw new ManagementError(failure);
    const answer = readAnswer(text);
    if (answer === null) throw new ManagementError('management_bad_answer');
    return answer;
  }
}

/** Returns the failure that a status means. NanoMDM responds with 200, or with 207 for partial success. */
function failureOf(status: number): ManagementFailure | null {
  if (status === 200 || status === 207) return null;
  if (status === 401 || status === 403) return 'management_unauthorized';
  if (status === 404) return 'management_unknown_device';
  return status === 429 || status >= 500 ? 'management_unavailable' : 'management_bad_answer';
}

function isRetryable(code: ManagementFailure): boolean {
  return code === 'management_unreachable' || code === 'management_unavailable';
}

function wasPushed(answer: Answer, deviceId: string): boolean {
  return answer.push_error === undefined && answer.status[deviceId]?.push_result !== undefined;
}

/** Reads a response body. Throws ManagementError `management_bad_answer` above {@link MAX_ANSWER_BYTES}. */
async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) throw new ManagementError('management_bad_answer');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
