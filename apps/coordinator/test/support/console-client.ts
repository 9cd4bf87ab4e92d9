/** `Browser`: HTTP client for console tests that stores cookies and sends the headers `Origin` and JSON bodies as browsers do. */
export class Browser {
  readonly #base: string;
  readonly cookies = new Map<string, string>();
  origin: string;

  constructor(base: string) {
    this.#base = base;
    this.origin = base;
  }

  get(path: string): Promise<Response> {
    return this.send('GET', path);
  }

  post(path: string, body: unknown = {}): Promise<Response> {
    return this.send('POST', path, body);
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const answer = await fetch(this.#base + path, {
      method,
      redirect: 'manual',
      headers: {
        ...(method === 'GET' ? {} : { origin: this.origin }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.cookies.size === 0 ? {} : { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ') }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (/max-age=0/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return answer;
  }

  async signUp(email: string, password = PASSWORD, name = 'Ada'): Promise<Response> {
    return this.post('/console/auth/sign-up/email', { email, password, name });
  }

  async signIn(email: string, password = PASSWORD): Promise<Response> {
    return this.post('/console/auth/sign-in/email', { email, password });
  }

  /** Creates an API key; resolves to its text and id. */
  async newKey(fields: Record<string, unknown> = {}): Promise<{ secret: string; id: string }> {
    const answer = await this.post('/console/v1/keys', { name: 'test', ...fields });
    const { secret, key } = (await answer.json()) as { secret: string; key: { id: string } };
    return { secret, id: key.id };
  }
}

export const PASSWORD = 'correct horse battery';
