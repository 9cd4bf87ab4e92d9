import { mkdtempSync } from 'node:fs';
import { OpenAttendance } from '../apps/provider/src/open-attendance.js';

const simulated = process.argv[2] ?? null;
const opened = await OpenAttendance.open({
  dataDir: mkdtempSync('/tmp/hb/'),
  policy: {
    timeZone: 'Europe/Berlin',
    windows: Array.from({ length: 7 }, (_, i) => ({ days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: `0${i}:15`, to: `1${i}:45` })),
    onlyWhenIdleMinutes: 10,
    onBattery: 'stop',
    whenHot: 'stop',
    whenLeaving: 'finish',
  },
  simulatedHost: simulated,
  onCondition: () => {},
  onChange: () => {},
  onAwakeProblem: () => {},
  leave: async () => {},
  rest: async () => {},
  resume: () => {},
} as never);
await new Promise((r) => setTimeout(r, 5000));
const before = process.cpuUsage();
const t = performance.now();
await new Promise((r) => setTimeout(r, 60000));
const used = process.cpuUsage(before);
console.log(
  simulated,
  ((used.user + used.system) / 1000).toFixed(0),
  'ms of CPU in',
  ((performance.now() - t) / 1000).toFixed(1),
  's =',
  ((used.user + used.system) / 10 / (performance.now() - t)).toFixed(3),
  '%',
  opened.status.state,
);
await opened.close();
