/** Generates key pairs while garbage collection runs at varying moments, then prints a line. */
import { generateSealingKeyPair } from '../src/crypto/x25519.js';

const pairs = Number(process.argv[2]);
const litter: number[][] = [[]];
for (let made = 0; made < pairs; made++) {
  generateSealingKeyPair();
  // Varying sizes move the next garbage collection to different points of key generation.
  litter[0] = new Array<number>(Math.floor(Math.random() * 200)).fill(made);
}
process.stdout.write(`made ${pairs}`);
