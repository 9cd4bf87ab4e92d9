/** The commands' side of the control socket. Every question has a deadline, so that a frozen daemon hangs nobody. */
import { request } from 'node:http';
import { controlPath } from './address.js';
import { type DaemonStatus, type EnclaveCheck, isDaemonStatus, isEnclaveCheck } from './daemon-status.js';

export type ControlProblem = 'not_running' | 'no_answer' | 'not_understood';

export class ControlError extends Error {
  constructor(
    readonly problem: ControlProblem,
    message: string,
  ) {
    super(message);
    this.name = 'ControlError';
  }
}

const MOST_BYTES = 4 << 20;

/** Both throw {@link ControlError}. `ms`: how long the answer may take. */
export async function askStatus(dataDir: string, ms: number): Promise<DaemonStatus> {
  const value = await ask(dataDir, '/v1/status', ms);
  if (!isDaemonStatus(value)) throw notUnderstood();
  return value;
}

export async function askEnclave(dataDir: string, ms: number): Promise<EnclaveCheck> {
  const value = await ask(dataDir, '/v1/enclave', ms);
  if (!isEnclaveCheck(value)) throw notUnderstood();
  return value;
}

function ask(dataDir: string, path: string, ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(ms);
    const call = request({ socketPath: controlPath(dataDir), path, signal }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
        if (text.length > MOST_BYTES) response.destroy(notUnderstood());
      });
      response.on('error', () => reject(notUnderstood()));
      response.on('end', () => {
        try {
          resolve(JSON.parse(text));
        } catch {
          reject(notUnderstood());
        }
      });
    });
    call.on('error', ({ code }: NodeJS.ErrnoException) => reject(signal.aborted ? noAnswer() : refusal(dataDir, code)));
    call.end();
  });
}

function refusal(dataDir: string, code: string | undefined): ControlError {
  if (code === 'EACCES' || code === 'EPERM') {
    return new ControlError('no_answer', `the provider with the data directory ${dataDir} belongs to another user`);
  }
  if (code === 'ECONNRESET' || code === 'EPIPE') return noAnswer();
  return new ControlError('not_running', `no provider runs with the data directory ${dataDir}`);
}

function noAnswer(): ControlError {
  return new ControlError('no_answer', 'the provider does not answer');
}

function notUnderstood(): ControlError {
  return new ControlError('not_understood', 'the provider that runs is of another version; restart it');
}
