/** Inhibits sleep of the machine in the given folder until killed. */
import { inhibitCommand, SleepInhibitor } from '../../../src/host/condition/sleep-inhibitor.js';

const awake = new SleepInhibitor(inhibitCommand(process.argv[2] ?? '/', process.pid), () => process.exit(1));
awake.setActive(true);
setInterval(() => {}, 60_000);
