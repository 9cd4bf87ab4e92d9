/** All messages to a provider in one turn of the event loop need one system call. */
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JobId } from '@inference/protocol';
import { expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { ProviderSocket } from '../../../src/providers/session/provider-socket.js';

/** WebSocket on a stream that counts the chunks of each system call. */
class CountedWebSocket extends EventEmitter {
  readonly calls: number[] = [];
  readonly OPEN = 1;
  readonly readyState = 1;
  readonly stream = new Writable({
    writev: (chunks, done) => {
      this.calls.push(chunks.length);
      done();
    },
  });

  get bufferedAmount(): number {
    return this.stream.writableLength;
  }

  send(data: string | Uint8Array): void {
    this.stream.write(data);
  }

  terminate(): void {
    this.stream.destroy();
  }
}

function openSocket() {
  const webSocket = new CountedWebSocket();
  const ignore = (): void => {};
  const events = { text: ignore, binary: ignore, pingOrPong: ignore, backlogChanged: ignore, sendProgressed: ignore, closed: ignore };
  const socket = new ProviderSocket(webSocket as unknown as WebSocket, webSocket.stream, Date.now, events);
  return { socket, calls: webSocket.calls };
}

const cancel = { type: 'cancel', job_id: '00000000-0000-7000-8000-000000000000' as JobId } as const;

test('the messages of one turn leave together', async () => {
  const { socket, calls } = openSocket();
  for (let job = 0; job < 3; job++) socket.send(cancel);
  expect(calls).toEqual([]);
  await nextTurn();
  expect(calls).toEqual([3]);
});

test('messages before the end of a session are written', () => {
  const { socket, calls } = openSocket();
  socket.send(cancel);
  socket.terminate();
  expect(calls).toEqual([1]);
});
