/** Client of the daemon's control socket, for commands. Every request has a deadline, because the daemon may be frozen. */
import { request } from 'node:http';
import { controlPath } from './address.js';
import { type DaemonStatus, type EnclaveCheck, isDaemonStatus, isEnclaveCheck, isLinkStatus } from './daemon-status.js';
import type { LinkStatus } from './link-status.js';

type ControlProblem =
  /** Nothing listens on the socket. */
  | 'not_running'
  /** No answer in time, or the socket belongs to another user. */
  | 'no_answer'
  /** Probably of another version. */
  | 'not_understood'
  | 'refused';

/** The message is a sentence for the owner, without a full stop. */
export class ControlError extends Error {
  constructor(
    readonly problem: ControlProblem,
    message: string,
    /** Error code of the daemon's refusal. */
    readonly code: string | null = null,
  ) {
    super(message);
    this.name = 'ControlError';
  }
}

const MAX_BYTES = 4 << 20;

/** Waits at most `ms` milliseconds. Throws {@link ControlError}, like the following functions. */
export function requestStatus(dataDir: string, ms: number): Promise<DaemonStatus> {
  return requestDaemon(dataDir, { path: '/v1/status' }, isDaemonStatus, ms);
}

export function requestEnclaveCheck(dataDir: string, ms: number): Promise<EnclaveCheck> {
  return requestDaemon(dataDir, { path: '/v1/enclave' }, isEnclaveCheck, ms);
}

/** Reports a sign-in or sign-out. Resolves to the link's state, after the coordinator's answer if in time. */
export function notifySignIn(dataDir: string, ms: number): Promise<LinkStatus> {
  return requestDaemon(dataDir, { path: '/v1/link', body: {} }, isLinkStatus, ms);
}

/** Session token of the running provider. Resolves to null if there is none, and never rejects. */
export async function requestSessionToken(dataDir: string, ms: number): Promise<string | null> {
  const isAnswer = (value: unknown): value is { readonly token: string | null } => {
    const token = (value as { token?: unknown } | null)?.token;
    return token === null || typeof token === 'string';
  };
  return requestDaemon(dataDir, { path: '/v1/session-token' }, isAnswer, ms).then(
    ({ token }) => token,
    () => null,
  );
}

interface DaemonCall {
  readonly path: string;
  /** Makes the request a POST. */
  readonly body?: unknown;
}

/** Sends a request to the daemon, or to another process by the file name of its `socket`. Throws {@link ControlError}. */
export async function requestDaemon<Answer>(
  dataDir: string,
  call: DaemonCall,
  isAnswer: (value: unknown) => value is Answer,
  ms: number,
  socket?: string,
): Promise<Answer> {
  const { status, value } = await ask(dataDir, call, ms, socket);
  // With 500, the daemon could not execute the request.
  if ((status === 409 || status === 500) && isRefusal(value)) throw new ControlError('refused', value.error.message, value.error.code);
  if (status !== 200 || !isAnswer(value)) throw notUnderstood();
  return value;
}

function isRefusal(value: unknown): value is { readonly error: { readonly code: string; readonly message: string } } {
  const error = (value as { error?: { code?: unknown; message?: unknown } } | null)?.error;
  return typeof error?.code === 'string' && typeof error.message === 'string';
}

function ask(
  dataDir: string,
  { path, body }: DaemonCall,
  ms: number,
  socket: string | undefined,
): Promise<{ status: number; value: unknown }> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(ms);
    const method = body === undefined ? 'GET' : 'POST';
    const call = request({ socketPath: controlPath(dataDir, socket), path, method, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
        if (text.length > MAX_BYTES) response.destroy(notUnderstood());
      });
      response.on('error', () => reject(signal.aborted ? noAnswer() : notUnderstood()));
      response.on('end', () => {
        try {
          resolve({ status: response.statusCode ?? 0, value: JSON.parse(text) });
        } catch {
          reject(notUnderstood());
        }
      });
    });
    call.on('error', ({ code }: NodeJS.ErrnoException) => reject(signal.aborted ? noAnswer() : connectionError(dataDir, code)));
    call.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function connectionError(dataDir: string, code: string | undefined): ControlError {
  if (code === 'EACCES' || code === 'EPERM') {
    return new ControlError('no_answer', `the provider with the data directory ${dataDir} belongs to another user`);
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return noAnswer();
  return new ControlError('not_running', `no provider is running with the data directory ${dataDir}`);
}

function noAnswer(): ControlError {
  return new ControlError('no_answer', 'the provider is not responding');
}

function notUnderstood(): ControlError {
  return new ControlError('not_understood', 'the running provider has a different version; restart it');
}
