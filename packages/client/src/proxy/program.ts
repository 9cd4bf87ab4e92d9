/** The local proxy as a program, for `inference-proxy` and `inference-verify proxy`. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileStore, PolicyError, type PolicyInput, parsePolicy } from '../node.js';
import { createProxy } from './server.js';
import { verdictLine } from './verdict-log.js';

const usage = (
  program: string,
): string => `usage: ${program} --base-url URL [--listen 127.0.0.1:8086] [--policy FILE] [--allow-simulated] [--state FILE]

Serves the HTTP API of URL on this machine, end-to-end encrypted between this program and the machine that answers.
  --base-url URL      address of the coordinator
  --listen HOST:PORT  loopback address; default 127.0.0.1:8086
  --policy FILE       JSON with the evidence that providers must have
  --allow-simulated   accept simulated machines, whose evidence proves nothing
  --state FILE        file for the chosen providers, reused at the next start
Verdicts of the newest requests: GET http://127.0.0.1:8086/.inference/verdict`;

class UsageError extends Error {}

interface Settings {
  readonly baseURL: string;
  readonly host: '127.0.0.1' | '::1';
  readonly port: number;
  readonly policy: PolicyInput;
  readonly stateFile: string;
}

/**
 * Runs the proxy until SIGINT or SIGTERM. Returns the exit code: 0 help or signal, 2 wrong usage or policy, 3 any other error.
 *
 * @param program Name of the program in its texts.
 */
export async function runProxy(program: string, args: readonly string[]): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage(program));
    return 0;
  }
  try {
    await serveUntilSignal(parseSettings(args));
    return 0;
  } catch (error) {
    const isUsage = error instanceof UsageError || error instanceof PolicyError;
    console.error(`${program}: ${error instanceof Error ? error.message : String(error)}${isUsage ? `\n\n${usage(program)}` : ''}`);
    return isUsage ? 2 : 3;
  }
}

async function serveUntilSignal({ baseURL, host, port, policy, stateFile }: Settings): Promise<void> {
  const onVerdict = (verdict: Parameters<typeof verdictLine>[0]): void => console.log(verdictLine(verdict));
  const proxy = createProxy({ baseURL, policy, store: fileStore(stateFile), onVerdict });
  const address = await proxy.listen(host, port);
  const name = host === '::1' ? '[::1]' : host;
  console.log(`listening on http://${name}:${address.port} for ${baseURL}`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  await proxy.close();
}

function parseSettings(args: readonly string[]): Settings {
  const { values } = parseOptions(args);
  const baseURL = values['base-url'];
  if (baseURL === undefined || !URL.canParse(baseURL)) throw new UsageError('--base-url is an address such as https://host');
  const listen = /^(127\.0\.0\.1|localhost|\[::1\]):([0-9]{1,5})$/.exec(values.listen ?? '127.0.0.1:8086');
  if (listen === null || Number(listen[2]) > 65_535)
    throw new UsageError('--listen is a loopback address and port, such as 127.0.0.1:8086');
  const policy = values.policy === undefined ? {} : readPolicy(values.policy);
  return {
    baseURL,
    host: listen[1] === '[::1]' ? '::1' : '127.0.0.1',
    port: Number(listen[2]),
    policy: values['allow-simulated'] === true ? { ...policy, allowSimulated: true } : policy,
    stateFile: values.state ?? defaultStateFile(new URL(baseURL).origin),
  };
}

function parseOptions(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const options = { 'base-url': text, listen: text, policy: text, state: text, 'allow-simulated': { type: 'boolean' } } as const;
  try {
    return parseArgs({ args: [...args], options });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readPolicy(file: string): PolicyInput {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new UsageError(`--policy ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return parsePolicy(value);
}

/** One file per coordinator (XDG Base Directory Specification). */
function defaultStateFile(origin: string): string {
  const folder = process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state');
  const name = createHash('sha256').update(origin).digest('hex').slice(0, 16);
  return join(folder, 'inference-proxy', `${name}.json`);
}
