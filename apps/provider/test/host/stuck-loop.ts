/** Test program: its event loop runs for a while under the watchdog, then hangs. */
import { Watchdog } from '../../src/daemon/watchdog/watchdog.js';

const LIMIT_MS = 1_500;
const watchdog = new Watchdog({ tickMs: 20, limitMs: LIMIT_MS });

setTimeout(() => {
  process.send?.('turning', () => {
    // Keeps the watchdog's timer in use.
    void watchdog;
    for (;;);
  });
}, 1.3 * LIMIT_MS);
