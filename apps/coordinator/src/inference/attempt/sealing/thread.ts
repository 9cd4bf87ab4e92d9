/** Entry of the thread that makes encapsulationPool ahead: for a recipient's key and a count, so many, one after the other. */
import { parentPort } from 'node:worker_threads';
import { encapsulate } from '@inference/protocol/crypto';
import { type Delivery, ENC_BYTES, type Order, PAIR_BYTES } from './thread-messages.js';

parentPort?.on('message', ({ recipient, count }: Order) => {
  const made = new Uint8Array(count * PAIR_BYTES);
  try {
    for (let at = 0; at < made.length; at += PAIR_BYTES) {
      const { enc, sharedSecret } = encapsulate(recipient);
      made.set(enc, at);
      made.set(sharedSecret, at + ENC_BYTES);
    }
    parentPort?.postMessage({ recipient, made } satisfies Delivery, [made.buffer]);
  } catch {
    parentPort?.postMessage({ recipient, made: null } satisfies Delivery);
  }
});
