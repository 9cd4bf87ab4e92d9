/** `newPerson`: creates console users with a session, through the same API as the console's pages. */
import { randomUUID } from 'node:crypto';

export interface Person {
  readonly name: string;
  readonly email: string;
  readonly password: string;
  readonly accountId: string;
  /** `name=value` of every cookie of the session. */
  readonly cookies: readonly string[];
  /** Request from this person's browser. Rejects on refusal. */
  call<Answer>(method: string, path: string, body?: object): Promise<Answer>;
}

export interface PersonOptions {
  readonly name?: string;
  /** Initial balance in micro-USD, by a development deposit. */
  readonly deposit?: number;
  /** Grants operator access. */
  readonly admin?: boolean;
}

/** Creates an account on a running network. */
export async function newPerson(
  network: { readonly baseUrl: string; readonly adminKey: string },
  { name = 'Ada Lovelace', deposit = 0, admin = false }: PersonOptions = {},
): Promise<Person> {
  const { baseUrl } = network;
  const email = `${randomUUID()}@example.com`;
  const password = 'correct horse battery staple';
  const signUp = await fetch(`${baseUrl}/console/auth/sign-up/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: baseUrl },
    body: JSON.stringify({ name, email, password }),
  });
  if (!signUp.ok) throw new Error(`sign-up: ${signUp.status} ${await signUp.text()}`);
  const cookies = signUp.headers.getSetCookie().map((line) => line.split(';', 1)[0] ?? '');
  const call = async <Answer>(method: string, path: string, body?: object): Promise<Answer> => {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { origin: baseUrl, cookie: cookies.join('; '), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Answer;
  };
  const { id: accountId } = await call<{ id: string }>('GET', '/console/v1/me');
  if (deposit > 0) await call('POST', '/console/v1/deposits/development', { amount_micro_usd: deposit });
  if (admin) await makeAdmin(network, accountId);
  return { name, email, password, accountId, cookies, call };
}

async function makeAdmin({ baseUrl, adminKey }: { readonly baseUrl: string; readonly adminKey: string }, accountId: string): Promise<void> {
  const response = await fetch(`${baseUrl}/admin/v1/accounts/${accountId}`, {
    method: 'PATCH',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ is_admin: true }),
  });
  if (!response.ok) throw new Error(`admin flag: ${response.status} ${await response.text()}`);
}
