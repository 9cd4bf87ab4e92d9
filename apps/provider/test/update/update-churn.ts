/** Switches between two versions repeatedly until killed: `update-churn PREFIX`. */
import { currentVersion } from '../../src/update/layout.js';
import { countStart, endTrial, readTrial, rollBack, switchTo } from '../../src/update/trial.js';

const [prefix = ''] = process.argv.slice(2);
process.stdout.write('begins\n');
for (let round = 0; ; round++) {
  switchTo(prefix, currentVersion(prefix) === '1.0.0' ? '1.1.0' : '1.0.0', 1000, 1);
  const trial = readTrial(prefix);
  if (trial === null) throw new Error('there is no trial');
  countStart(prefix, trial);
  if (round % 2 === 0) endTrial(prefix);
  else rollBack(prefix, trial, 'it was the turn of the other', 1);
}
