/**
 * `npm run bench -- [--peer] [--smoke] [bench…]` runs the named `BENCHES`, or all. Exits 1 if one missed a target or could not be measured.
 *
 * - `--peer` compares the bench `engine` with llama.cpp's own server instead of node-llama-cpp.
 * - `--smoke` uses small sizes and ignores targets, so that CI checks that each bench completes.
 */
import { startProgress } from '../progress.js';
import { benchAttestation } from './attestation/index.js';
import { benchCluster } from './cluster/index.js';
import { benchE2e } from './e2e/index.js';
import { benchAgainstPeer } from './engine/against-peer.js';
import { benchConversations } from './engine/conversations.js';
import { benchDrafts } from './engine/drafts.js';
import { benchEngine } from './engine/index.js';
import { benchLongContext } from './engine/long-context.js';
import { benchImages } from './images/index.js';
import { benchLedger } from './ledger/index.js';
import { benchLeases } from './ledger/leases.js';
import { benchPublicStatistics } from './public-statistics/index.js';
import { benchRelay } from './relay/index.js';
import { benchRendering } from './rendering/index.js';
import { benchScheduler } from './scheduler/index.js';
import { isSmoke } from './size.js';
import { benchVision } from './vision/index.js';

const BENCHES: Readonly<Record<string, () => Promise<boolean>>> = {
  relay: benchRelay,
  e2e: benchE2e,
  engine: () => (withPeer ? benchAgainstPeer() : benchEngine()),
  drafts: benchDrafts,
  conversations: benchConversations,
  'long-context': benchLongContext,
  ledger: benchLedger,
  leases: benchLeases,
  statistics: benchPublicStatistics,
  attestation: benchAttestation,
  rendering: benchRendering,
  scheduler: benchScheduler,
  images: benchImages,
  vision: benchVision,
  cluster: benchCluster,
};
const OPTIONS = ['--peer', '--smoke'];

const options = process.argv.slice(2).filter((argument) => argument.startsWith('--'));
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const withPeer = options.includes('--peer');
const unknown = [...names.filter((name) => BENCHES[name] === undefined), ...options.filter((option) => !OPTIONS.includes(option))];
if (unknown.length > 0) {
  console.error(`unknown bench ${unknown.join(', ')}; there are: ${Object.keys(BENCHES).join(', ')}`);
  process.exit(2);
}

/** Printed lines with a digit. A bench without any has measured nothing. */
let figures = 0;
const print = console.log;
console.log = (...parts: unknown[]) => {
  if (/\d/.test(parts.join(' '))) figures++;
  print(...parts);
};

let met = true;
for (const [name, bench] of Object.entries(BENCHES)) {
  if (names.length > 0 && !names.includes(name)) continue;
  print(`\n== ${name}`);
  figures = 0;
  const progress = startProgress({ figures: () => `${name}, ${figures} lines of figures so far`, print });
  const isMet = await bench();
  progress.stop();
  if (figures === 0) throw new Error(`the bench ${name} printed no figures`);
  met = (isMet || isSmoke) && met;
}
process.exit(met ? 0 : 1);
