/**
 * Checks package-lock.json: no registry URLs, a hash per registry package, and entries for the optional packages of all platforms.
 * Without those entries, `npm ci` fails on Macs.
 */
import { readFileSync } from 'node:fs';

const lock = JSON.parse(readFileSync(process.argv[2] ?? new URL('../../package-lock.json', import.meta.url), 'utf8'));
/** Platform packages of node-llama-cpp 3.22.1 that the registry mirror lacks. Remove an entry once its hash is in the lock file. */
const WITHOUT_HASH = new Set(
  ['linux-riscv64', 'mac-arm64-metal', 'mac-x64', 'win-arm64', 'win-x64'].map((name) => `@node-llama-cpp/${name}@3.22.1`),
);
const problems = [];
const names = new Set(Object.keys(lock.packages).map((path) => path.split('node_modules/').pop()));

for (const [path, entry] of Object.entries(lock.packages)) {
  if (/^https?:/.test(entry.resolved ?? '')) problems.push(`${path} names a registry host: ${entry.resolved}`);
  if (path.includes('node_modules/') && entry.link !== true && entry.inBundle !== true) {
    const name = `${entry.name ?? path.split('node_modules/').pop()}@${entry.version}`;
    const hasHash = /^sha512-[A-Za-z0-9+/]{86}==$/.test(entry.integrity ?? '');
    if (!hasHash && !WITHOUT_HASH.has(name)) problems.push(`${path} has no sha512 integrity`);
    if (hasHash && WITHOUT_HASH.has(name)) problems.push(`${name} has its integrity: remove it from the exceptions in this script`);
  }
  for (const optional of Object.keys(entry.optionalDependencies ?? {})) {
    if (!names.has(optional)) problems.push(`${path} lacks its platform package ${optional}`);
  }
}

for (const problem of problems) console.error(problem);
console.log(`lock file: ${names.size} packages, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
