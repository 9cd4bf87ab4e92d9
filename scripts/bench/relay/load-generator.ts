/** Client program of the relay bench: runs the loads that arrive over IPC, and sends the results. A wrong response ends the process. */
import { microseconds, tokenTimes } from './answers.js';
import { HttpConnection, postRequest, type Target } from './http-connection.js';

/** Closed-loop load: a fixed concurrency, for a fixed time or until a number of responses. */
export interface ClosedLoad {
  readonly kind: 'closed';
  readonly target: Target;
  readonly body: string;
  /** Further requests. Connections are divided evenly among all requests. */
  readonly others?: readonly { readonly target: Target; readonly body: string }[];
  readonly atOnce: number;
  readonly durationMs: number;
  /** Number of responses after which the load ends; null: only time ends it. */
  readonly answers: number | null;
  /** Last bytes that every response must have. */
  readonly ending: string;
}

export interface ClosedResult {
  readonly answers: number;
  readonly seconds: number;
}

/** `streams` concurrent connections, each running `rounds` streams one after the other at the pace in the body. */
export interface PacedLoad {
  readonly kind: 'paced';
  readonly target: Target;
  readonly body: string;
  readonly streams: number;
  readonly rounds: number;
  /** Stream starts are spread over this time. */
  readonly overMs: number;
  readonly tokens: number;
}

export interface PacedResult {
  /** Milliseconds from the sending of the request to the first token, ascending. */
  readonly firstMs: number[];
  /** Milliseconds from a token's creation to its arrival, ascending; first tokens excluded. */
  readonly tokenMs: number[];
  readonly longestGapMs: number;
  /** Maximum concurrent streams. */
  readonly peak: number;
}

process.on('message', (load: ClosedLoad | PacedLoad) => {
  (load.kind === 'closed' ? closed(load) : paced(load)).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error instanceof Error ? error.message : error);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function closed({ target, body, others = [], atOnce, durationMs, answers: max, ending }: ClosedLoad): Promise<ClosedResult> {
  const requests = [{ target, body }, ...others].map((one) => ({ port: one.target.port, bytes: postRequest(one.target, one.body) }));
  const expected = Buffer.from(ending);
  const begin = performance.now();
  let answers = 0;
  const worker = async (_: unknown, index: number): Promise<void> => {
    const { port, bytes } = requests[index % requests.length] as (typeof requests)[number];
    const connection = await HttpConnection.open(port);
    while (performance.now() - begin < durationMs && (max === null || answers < max)) {
      let last: Buffer = Buffer.alloc(0);
      const status = await connection.post(bytes, (part) => {
        last = part.length >= expected.length ? part : Buffer.concat([last, part]);
      });
      if (status !== 200 || !last.subarray(-expected.length).equals(expected)) {
        throw new Error(`a client was answered ${status}: ${last.toString('utf8', 0, 300)}`);
      }
      answers++;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return { answers, seconds: (performance.now() - begin) / 1000 };
}

async function paced({ target, body, streams, rounds, overMs, tokens }: PacedLoad): Promise<PacedResult> {
  const request = postRequest(target, body);
  const result = { firstMs: [] as number[], tokenMs: [] as number[], longestGapMs: 0, peak: 0 };
  let running = 0;
  const stream = async (connection: HttpConnection): Promise<void> => {
    let seen = 0;
    let rest = '';
    const sent = microseconds();
    let last = sent;
    result.peak = Math.max(result.peak, ++running);
    const status = await connection.post(request, (part) => {
      const now = microseconds();
      const text = rest + part.toString('latin1');
      const cut = text.lastIndexOf('\n\n');
      rest = text.slice(cut === -1 ? 0 : cut);
      for (const time of cut === -1 ? [] : tokenTimes(text.slice(0, cut))) {
        if (seen++ === 0) result.firstMs.push((now - sent) / 1000);
        else {
          result.tokenMs.push((now - time) / 1000);
          result.longestGapMs = Math.max(result.longestGapMs, (now - last) / 1000);
        }
        last = now;
      }
    });
    running--;
    if (status !== 200 || seen !== tokens) throw new Error(`a stream was answered ${status} with ${seen} of ${tokens} tokens`);
  };
  const client = async (_: unknown, index: number): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, (index * overMs) / streams));
    const connection = await HttpConnection.open(target.port);
    for (let round = 0; round < rounds; round++) await stream(connection);
    connection.close();
  };
  await Promise.all(Array.from({ length: streams }, client));
  result.firstMs.sort((a, b) => a - b);
  result.tokenMs.sort((a, b) => a - b);
  return result;
}
