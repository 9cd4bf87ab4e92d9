/** A resource that cannot be closed keeps no other one open. */
import { describe, expect, it } from 'vitest';
import { createLog, errorFacts } from '../../src/log.js';
import { createStartContext } from '../../src/wiring/start-context.js';
import { startCoordinator } from '../support/harness.js';

describe('resources of a start', () => {
  /** Closers `c`, `b` and `a` in this order. Those in `failing` reject. */
  const closed = async (...failing: readonly string[]) => {
    const log = createLog('silent', { write: () => {} });
    const { disposal } = createStartContext({ log, config: { dataDir: '/nowhere' } } as Parameters<typeof createStartContext>[0]);
    const calls: string[] = [];
    for (const name of ['a', 'b', 'c']) {
      disposal.defer(async () => {
        calls.push(name);
        if (failing.includes(name)) throw new Error(name);
      });
    }
    const error = await disposal.close().then(
      () => null,
      (reason: unknown) => reason,
    );
    return { calls, error };
  };

  it('are all closed, the newest first', async () => {
    expect(await closed()).toEqual({ calls: ['c', 'b', 'a'], error: null });
  });

  it('are all closed where one fails, and its error is reported', async () => {
    expect(await closed('c')).toEqual({ calls: ['c', 'b', 'a'], error: new Error('c') });
  });

  it('are all closed where several fail, and all errors are reported', async () => {
    const { calls, error } = await closed('c', 'a');
    expect(calls).toEqual(['c', 'b', 'a']);
    expect(error).toBeInstanceOf(AggregateError);
    expect((error as AggregateError).errors).toEqual([new Error('c'), new Error('a')]);
    expect(errorFacts(error).errors).toMatchObject([{ name: 'Error' }, { name: 'Error' }]);
  });
});

it('closes the database after a ledger that cannot be closed', async () => {
  const harness = await startCoordinator();
  const { app } = harness;
  const close = app.ledger.close.bind(app.ledger);
  app.ledger.close = async () => {
    await close();
    throw new Error('the last step failed');
  };
  await expect(app.close(0)).rejects.toThrow('the last step failed');
  await expect(app.database.selectFrom('accounts').select('id').execute()).rejects.toThrow('driver has already been destroyed');
  await harness.close();
});
