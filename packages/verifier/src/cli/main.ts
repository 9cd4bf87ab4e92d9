/** Entry of `inference-verify`: verifies a network, answer, receipt, certificate chain or transparency log, or starts the proxy. */
import { runCommandLine } from './command-line.js';

runCommandLine(process.argv.slice(2), console).then((code) => {
  process.exitCode = code;
});
