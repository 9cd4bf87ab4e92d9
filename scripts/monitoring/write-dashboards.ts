/** `npm run dashboards` writes the Grafana dashboard in `deploy/grafana` from coordinator-dashboard.ts. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { COORDINATOR_DASHBOARD } from './coordinator-dashboard.js';
import { dashboard } from './grafana.js';

const FILE = fileURLToPath(new URL('../../deploy/grafana/dashboards/coordinator.json', import.meta.url));

writeFileSync(FILE, `${JSON.stringify(dashboard(COORDINATOR_DASHBOARD), null, 2)}\n`);
console.log(`wrote ${FILE}`);
