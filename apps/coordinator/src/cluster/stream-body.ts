/**
 * `sendBody` and `readBody`: transfer a byte array, such as an image, over a stream between coordinators.
 *
 * The first message is the length as decimal text. The chunks follow as binary messages.
 */
import type { PeerStream } from './peer.js';

/** Bytes per message, below the maximum of a link. */
const CHUNK_BYTES = 256 * 1024;
/** Maximum time until the first message, and between two messages. */
const MAX_PAUSE_MS = 2000;
const MAX_TOTAL_MS = 15_000;

/** Sends a body and closes the stream. Resolves once all chunks are queued, or the stream has ended. */
export function sendBody(stream: PeerStream, body: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    let offset = 0;
    const timer = setTimeout(() => stream.abort('timeout'), MAX_TOTAL_MS);
    const finish = (): void => {
      clearTimeout(timer);
      resolve();
    };
    const send = (): void => {
      while (offset < body.length) {
        const chunk = body.subarray(offset, offset + CHUNK_BYTES);
        offset += chunk.length;
        if (!stream.send(chunk, false)) return;
      }
      stream.close();
      finish();
    };
    stream.listen({ message: () => stream.abort('unexpected'), control: () => {}, drained: send, closed: finish });
    if (stream.isClosed) return;
    stream.send(Buffer.from(String(body.length)), true);
    send();
  });
}

/** Reads a body. Null: the body did not arrive completely in time or before `signal` was aborted, or is larger than `maxBytes`. */
export function readBody(stream: PeerStream, maxBytes: number, signal?: AbortSignal): Promise<Uint8Array | null> {
  return new Promise((resolve) => {
    const chunks: Uint8Array[] = [];
    let total: number | null = null;
    let received = 0;
    const finish = (body: Uint8Array | null): void => {
      clearTimeout(pause);
      clearTimeout(deadline);
      signal?.removeEventListener('abort', fail);
      if (body === null && !stream.isClosed) stream.abort('unwanted');
      resolve(body);
    };
    const fail = (): void => finish(null);
    const pause = setTimeout(fail, MAX_PAUSE_MS);
    const deadline = setTimeout(fail, MAX_TOTAL_MS);
    signal?.addEventListener('abort', fail, { once: true });
    stream.listen({
      message: (bytes, isText) => {
        pause.refresh();
        if (total === null) {
          total = isText ? lengthOf(bytes, maxBytes) : null;
        } else {
          // Copied, because a payload is a view of a larger buffer, which would stay in memory.
          chunks.push(Buffer.from(bytes));
          received += bytes.length;
        }
        if (total === null || received > total) fail();
        else if (received === total) finish(Buffer.concat(chunks));
      },
      control: () => {},
      drained: () => {},
      closed: fail,
    });
    if (signal?.aborted === true) fail();
  });
}

function lengthOf(bytes: Uint8Array, maxBytes: number): number | null {
  const text = Buffer.from(bytes).toString('latin1');
  return /^\d{1,15}$/.test(text) && Number(text) <= maxBytes ? Number(text) : null;
}
