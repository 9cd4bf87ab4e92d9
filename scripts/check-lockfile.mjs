/**
 * Checks package-lock.json: it names no registry host, and it holds an entry for every optional (per-platform) package
 * that a locked package declares, so that `npm ci` works on a Mac too, whatever machine wrote the lock.
 */
import { readFileSync } from 'node:fs';

const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
const problems = [];
const names = new Set(Object.keys(lock.packages).map((path) => path.split('node_modules/').pop()));

for (const [path, entry] of Object.entries(lock.packages)) {
  if (/^https?:/.test(entry.resolved ?? '')) problems.push(`${path} names a registry host: ${entry.resolved}`);
  for (const optional of Object.keys(entry.optionalDependencies ?? {})) {
    if (!names.has(optional)) problems.push(`${path} lacks its platform package ${optional}`);
  }
}

for (const problem of problems) console.error(problem);
console.log(`lock file: ${names.size} packages, ${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
