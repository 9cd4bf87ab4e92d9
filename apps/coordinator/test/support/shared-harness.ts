/**
 * One coordinator for the tests of a file that need no settings of their own, because a start takes most of a short test's time.
 *
 * Each test gets a new account with the development deposit, and its own providers and log lines.
 */
import { type Harness, type HarnessOptions, startHarness, until } from './harness.js';
import type { ScriptedProvider } from './scripted-provider.js';

export class SharedHarness {
  readonly #options: HarnessOptions;
  #started: Promise<Harness> | null = null;

  constructor(options: HarnessOptions = {}) {
    this.#options = options;
  }

  /** A view for one test. Its `close` disconnects its providers. */
  async take(): Promise<Harness> {
    this.#started ??= startHarness(this.#options);
    const whole = await this.#started;
    const { balance } = await whole.money();
    const developer = await whole.customer(balance);
    const { apiKey } = developer;
    const linesBefore = new Set(whole.log);
    const log = (): string[] => whole.log.filter((line) => !linesBefore.has(line));
    const providers: ScriptedProvider[] = [];
    const abandon = (): void => {
      this.#started = null;
    };
    return {
      ...whole,
      apiKey,
      developer,
      get log() {
        return log();
      },
      jobLines: () =>
        log()
          .map((line) => JSON.parse(line))
          .filter((line) => line.msg === 'job'),
      async provider(options) {
        const provider = await whole.provider(options);
        providers.push(provider);
        return provider;
      },
      chat: (body, init = {}) => whole.chat(body, { ...init, headers: { authorization: `Bearer ${apiKey}`, ...init.headers } }),
      post: (path, body, headers = {}) => whole.post(path, body, { 'x-api-key': apiKey, ...headers }),
      get: (path, key = apiKey) => whole.get(path, key),
      money: (accountId = developer.accountId) => whole.money(accountId),
      async close() {
        for (const provider of providers) provider.close();
        // A later test must not meet these providers, or the log line of a job that still ends.
        try {
          await until(async () => whole.app.providers.connections === 0 && (await whole.money(developer.accountId)).reserved === 0);
          const models = new Set(providers.flatMap((provider) => provider.options.models ?? []));
          await until(() => [...models].every((model) => whole.app.cluster.servingAtPeers(model) === 0));
          await new Promise((resolve) => setImmediate(resolve));
        } catch (error) {
          // The next test starts another coordinator, so that one failure is no other test's.
          abandon();
          await whole.close();
          throw error;
        }
      },
    };
  }

  async close(): Promise<void> {
    await (await this.#started)?.close();
  }
}
