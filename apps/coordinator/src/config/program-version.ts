/** `programVersion`: version of the coordinator, from its `package.json`. */
import { createRequire } from 'node:module';

/** Form `X.Y.Z`. The import map of package.json resolves `#package.json` from both sources (tests) and build. */
export function programVersion(): string {
  return (createRequire(import.meta.url)('#package.json') as { version: string }).version;
}
