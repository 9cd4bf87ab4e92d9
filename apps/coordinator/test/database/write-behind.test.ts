import { afterEach, describe, expect, it } from 'vitest';
import { PeriodicRefresh } from '../../src/database/periodic-refresh.js';
import { WriteBehindQueue } from '../../src/database/write-behind-queue.js';

const NEVER_MS = 2 ** 30;

describe('the write-behind queue', () => {
  const opened: WriteBehindQueue<string, number>[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((rows) => rows.close())));

  /** Queue whose `write` fails while `broken` is true. */
  function queueOf(maxWaiting = 100) {
    const written: (readonly (readonly [string, number])[])[] = [];
    const problems: unknown[] = [];
    const state = { broken: false, rounds: 0, written, problems };
    const rows = new WriteBehindQueue<string, number>({
      write: async (piece) => {
        if (state.broken) throw new Error('the disk is full');
        written.push(piece);
      },
      onWritten: async () => void state.rounds++,
      onWriteError: (error) => problems.push(error),
      everyMs: NEVER_MS,
      perWrite: 2,
      maxWaiting,
    });
    opened.push(rows);
    return { rows, state };
  }

  it('writes in pieces, in arrival order, the newest row of each key', async () => {
    const { rows, state } = queueOf();
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['c', 3],
      ['a', 4],
    ] as const)
      rows.put(key, value);
    expect([rows.get('a'), rows.get('z')]).toEqual([4, undefined]);
    await rows.flush();
    expect(state.written).toEqual([
      [
        ['b', 2],
        ['c', 3],
      ],
      [['a', 4]],
    ]);
    expect([rows.get('a'), state.rounds]).toEqual([undefined, 1]);
    await rows.flush();
    expect(state.rounds).toBe(1);
  });

  it('retries failed rows later, and drops the oldest beyond the maximum', async () => {
    const { rows, state } = queueOf(3);
    state.broken = true;
    for (const key of ['a', 'b', 'c', 'd']) rows.put(key, 1);
    await rows.flush();
    expect(state.problems).toEqual([new Error('the disk is full')]);
    expect([rows.get('a'), rows.get('b'), rows.get('d')]).toEqual([undefined, 1, 1]);
    state.broken = false;
    await rows.flush();
    expect(state.written.flat().map(([key]) => key)).toEqual(['b', 'c', 'd']);
  });

  it('has written all rows that were queued at a flush, although an earlier write was running', async () => {
    const written: string[] = [];
    let finish = (): void => {};
    let start = (): void => {};
    const started = new Promise<void>((resolve) => {
      start = resolve;
    });
    const rows = new WriteBehindQueue<string, number>({
      write: async (piece) => {
        if (written.length === 0) {
          await new Promise<void>((resolve) => {
            finish = resolve;
            start();
          });
        }
        for (const [key] of piece) written.push(key);
      },
      onWriteError: (error) => {
        throw error;
      },
      everyMs: NEVER_MS,
      perWrite: 10,
      maxWaiting: 10,
    });
    opened.push(rows);
    rows.put('a', 1);
    const earlier = rows.flush();
    await started;
    rows.put('b', 1);
    const flushes = [rows.flush(), rows.flush()];
    expect(flushes[0]).toBe(flushes[1]);
    finish();
    await flushes[0];
    expect(written).toEqual(['a', 'b']);
    await earlier;
  });

  it('writes a newer row of a key that is being written afterwards, at the latest when it closes', async () => {
    const written: number[] = [];
    const rows: WriteBehindQueue<string, number> = new WriteBehindQueue({
      write: async (piece) => {
        for (const [, value] of piece) written.push(value);
        if (written.length === 1) rows.put('a', 2);
      },
      onWriteError: (error) => {
        throw error;
      },
      everyMs: NEVER_MS,
      perWrite: 10,
      maxWaiting: 10,
    });
    rows.put('a', 1);
    await rows.close();
    expect(written).toEqual([1, 2]);
  });
});

describe('the periodic refresh', () => {
  it('reads first, and never again after that read failed', async () => {
    let readings = 0;
    const refreshing = new PeriodicRefresh({
      read: async () => {
        readings++;
        throw new Error('there is no database');
      },
      everyMs: 1,
      onError: () => {},
    });
    await expect(refreshing.begin()).rejects.toThrow('there is no database');
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(readings).toBe(1);
    refreshing.close();
  });

  it('reads periodically, reports a failed read, and continues', async () => {
    const problems: unknown[] = [];
    let readings = 0;
    const refreshing = new PeriodicRefresh({
      read: async () => {
        if (++readings === 2) throw new Error('for a moment');
      },
      everyMs: 1,
      onError: (error) => problems.push(error),
    });
    await refreshing.begin();
    await expect.poll(() => readings).toBeGreaterThan(3);
    refreshing.close();
    expect(problems).toEqual([new Error('for a moment')]);
  });

  it('continues after an error that `onError` throws, too', async () => {
    let readings = 0;
    const refreshing = new PeriodicRefresh({
      read: async () => {
        if (++readings === 2) throw new Error('for a moment');
      },
      everyMs: NEVER_MS,
      onError: (error) => {
        throw error;
      },
    });
    await refreshing.begin();
    await expect(refreshing.refreshNow()).rejects.toThrow('for a moment');
    await refreshing.refreshNow();
    refreshing.close();
    expect(readings).toBe(3);
  });
});
