/** `npm run bench -- [relay] [engine]`: runs the named benches, or all of them. Exits 1 when one misses a target. */
import { benchEngine } from './engine/index.js';
import { benchRelay } from './relay/index.js';

const BENCHES: Readonly<Record<string, () => Promise<boolean>>> = { relay: benchRelay, engine: benchEngine };

const names = process.argv.slice(2);
const unknown = names.filter((name) => BENCHES[name] === undefined);
if (unknown.length > 0) {
  console.error(`unknown bench ${unknown.join(', ')}; there are: ${Object.keys(BENCHES).join(', ')}`);
  process.exit(2);
}

let met = true;
for (const [name, bench] of Object.entries(BENCHES)) {
  if (names.length > 0 && !names.includes(name)) continue;
  console.log(`\n== ${name}`);
  met = (await bench()) && met;
}
process.exit(met ? 0 : 1);
