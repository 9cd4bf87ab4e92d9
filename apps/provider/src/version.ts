/** Version of this program, from its package. */
import { readFileSync } from 'node:fs';

export function agentVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { version } = JSON.parse(text) as { version: string };
  return version;
}
