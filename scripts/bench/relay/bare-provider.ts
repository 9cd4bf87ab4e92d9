/** The process behind the bare relay: answers at once, a stream as one message per token. */
import { WebSocket } from 'ws';
import { PLAIN_ANSWER, streamTokens } from './answers.js';

const socket = new WebSocket(`ws://127.0.0.1:${process.argv[2]}`, { perMessageDeflate: false });
const tokens = streamTokens().map((text) => Buffer.from(text));
const plain = Buffer.from(PLAIN_ANSWER);

socket.on('open', () => process.send?.({ ready: true }));
socket.on('message', (message: Buffer) => {
  const id = message.subarray(0, 4);
  const send = (last: boolean, payload: Buffer): void => socket.send(Buffer.concat([id, Buffer.of(last ? 1 : 0), payload]));
  if (message[4] === 0) {
    send(true, plain);
    return;
  }
  for (const token of tokens) send(false, token);
  send(true, Buffer.from('data: [DONE]\n\n'));
});
process.on('disconnect', () => process.exit());
