/** Makes as many key pairs as it is told, while memory is collected at ever new moments. Says so when it is done. */
import { generateSealingKeyPair } from '../src/crypto/x25519.js';

const pairs = Number(process.argv[2]);
const litter: number[][] = [[]];
for (let made = 0; made < pairs; made++) {
  generateSealingKeyPair();
  // Of another size each time, so that the next collection begins somewhere else in the making of a pair.
  litter[0] = new Array<number>(Math.floor(Math.random() * 200)).fill(made);
}
process.stdout.write(`made ${pairs}`);
