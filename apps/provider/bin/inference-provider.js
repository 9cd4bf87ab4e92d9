#!/usr/bin/env node
/** The command on the PATH. Prints a sentence on an old Node, which would otherwise fail with a stack trace. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `inference-provider needs Node 20.19 or newer, and this is ${process.versions.node}. Install a newer one: https://nodejs.org\n`,
  );
  process.exit(1);
}
await import('../dist/main.js');
