/** Entry file of the worker thread that computes HPKE encapsulations for `EncapsulationPool`. */
import { parentPort } from 'node:worker_threads';
import { encapsulate } from '@inference/protocol/crypto';
import { ENC_BYTES, type EncapsulationBatch, type EncapsulationRequest, PAIR_BYTES } from './thread-messages.js';

parentPort?.on('message', ({ recipient, count }: EncapsulationRequest) => {
  const pairs = new Uint8Array(count * PAIR_BYTES);
  try {
    for (let at = 0; at < pairs.length; at += PAIR_BYTES) {
      const { enc, sharedSecret } = encapsulate(recipient);
      pairs.set(enc, at);
      pairs.set(sharedSecret, at + ENC_BYTES);
    }
    parentPort?.postMessage({ recipient, count, pairs } satisfies EncapsulationBatch, [pairs.buffer]);
  } catch {
    parentPort?.postMessage({ recipient, count, pairs: null } satisfies EncapsulationBatch);
  }
});
