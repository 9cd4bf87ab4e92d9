/** Version of this program, from its `package.json`. */
import { createRequire } from 'node:module';

/** `X.Y.Z`. The manifest lies beside the sources (tests) and beside the build. */
export function programVersion(): string {
  return (createRequire(import.meta.url)('#package.json') as { version: string }).version;
}
