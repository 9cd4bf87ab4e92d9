/** Entry of the program `inference-proxy`. */
import { runProxy } from './program.js';

process.exitCode = await runProxy('inference-proxy', process.argv.slice(2));
