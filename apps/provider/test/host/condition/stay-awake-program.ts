/** Keeps the machine awake whose folder it is given, until it is killed. */
import { awakeCommand, StayAwake } from '../../../src/host/condition/stay-awake.js';

const awake = new StayAwake(awakeCommand(process.argv[2] ?? '/', process.pid), () => process.exit(1));
awake.want(true);
setInterval(() => {}, 60_000);
