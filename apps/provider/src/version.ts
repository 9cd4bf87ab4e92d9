/** Version of this program, from package.json. */
import { createRequire } from 'node:module';

export function agentVersion(): string {
  return (createRequire(import.meta.url)('#package.json') as { version: string }).version;
}
