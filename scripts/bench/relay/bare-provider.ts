/** Program that answers the requests of the bare relay (bare-relay.ts), one message per token, at once or at the requested pace. */
import { WebSocket } from 'ws';
import { emitAtPace, PLAIN_ANSWER, paceOf, STREAM_END, streamTokens, timedToken } from './answers.js';

const socket = new WebSocket(`ws://127.0.0.1:${process.argv[2]}`, { perMessageDeflate: false });
const tokens = streamTokens().map((text) => Buffer.from(text));
const plain = Buffer.from(PLAIN_ANSWER);
const end = Buffer.from(STREAM_END);

socket.on('open', () => process.send?.({ ready: true }));
socket.on('message', (message: Buffer) => {
  const id = message.subarray(0, 4);
  const send = (last: boolean, payload: Buffer): void => socket.send(Buffer.concat([id, Buffer.of(last ? 1 : 0), payload]));
  if (message[4] === 0) {
    send(true, plain);
    return;
  }
  const pace = paceOf(message);
  if (pace !== null) {
    emitAtPace(
      pace,
      () => send(false, Buffer.from(timedToken())),
      () => send(true, end),
    );
    return;
  }
  for (const token of tokens) send(false, token);
  send(true, end);
});
process.on('disconnect', () => process.exit());
