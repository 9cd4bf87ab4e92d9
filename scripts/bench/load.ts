/** `runLoad`: sends HTTP requests for a fixed time. Each of `concurrency` clients sends the next when the last is answered. */

interface LoadOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (index: number) => string;
  readonly concurrency: number;
  /** Time after which no further request begins. */
  readonly durationMs: number;
  /** Throws on a wrong response. Called for every response with status and whole body. */
  readonly check: (status: number, body: string) => void;
}

interface LoadResult {
  readonly answers: number;
  readonly seconds: number;
  /** Total length of the response bodies, in characters. */
  readonly characters: number;
  /** Milliseconds from request to first body byte, ascending. */
  readonly firstByteMs: readonly number[];
}

/** Runs the load. Rejects on the first failed or wrong answer. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const begin = performance.now();
  const end = begin + options.durationMs;
  const firstByteMs: number[] = [];
  let answers = 0;
  let characters = 0;
  let index = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < end) {
      const answer = await post(options, options.body(index++));
      options.check(answer.status, answer.body);
      answers++;
      characters += answer.body.length;
      firstByteMs.push(answer.firstByteMs);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
  firstByteMs.sort((a, b) => a - b);
  return { answers, seconds: (performance.now() - begin) / 1000, characters, firstByteMs };
}

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly firstByteMs: number;
}

async function post(options: LoadOptions, body: string): Promise<Answer> {
  const begin = performance.now();
  const response = await fetch(options.url, { method: 'POST', headers: { ...options.headers, 'content-type': 'application/json' }, body });
  const decoder = new TextDecoder();
  let text = '';
  let firstByteMs = 0;
  if (response.body !== null) {
    for await (const part of response.body) {
      if (firstByteMs === 0) firstByteMs = performance.now() - begin;
      text += decoder.decode(part, { stream: true });
    }
  }
  return { status: response.status, body: text, firstByteMs };
}
