import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Copy, DockerfileParser, type From } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../release/manifest.js';

const TRACKED = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n');

describe.each(['coordinator', 'agent'])('deploy/%s.Dockerfile', (name) => {
  const text = readFileSync(join(ROOT, `deploy/${name}.Dockerfile`), 'utf8');
  const dockerfile = DockerfileParser.parse(text);
  const instructions = dockerfile.getInstructions();
  const last = (keyword: string) => instructions.filter((instruction) => instruction.getKeyword() === keyword).at(-1);

  it('has no finding of the linter', () => {
    expect(validate(text)).toEqual([]);
  });

  it('pins every base image by tag and digest', () => {
    const bases = new Map(dockerfile.getInitialARGs().map((arg) => [arg.getProperty()?.getName(), arg.getProperty()?.getValue() ?? '']));
    const used = dockerfile.getFROMs().map((from: From) => bases.get(/^\$\{(\w+)\}$/.exec(from.getImage() ?? '')?.[1]));
    expect(used.length).toBeGreaterThan(1);
    for (const base of used) expect(base).toMatch(/^[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  });

  it('copies files that exist, and every manifest of a workspace before the installation', () => {
    const sources = dockerfile
      .getCOPYs()
      .filter((copy: Copy) => copy.getFlags().every((flag) => flag.getName() !== 'from'))
      .flatMap((copy) =>
        copy
          .getArguments()
          .slice(0, -1)
          .map((argument) => argument.getValue()),
      );
    const missing = sources.filter((source) => source !== '.' && !TRACKED.some((file) => file === source || file.startsWith(`${source}/`)));
    expect(missing).toEqual([]);
    const manifests = TRACKED.filter((file) => /^(?:(?:apps|packages)\/[^/]+|test)\/package\.json$/.test(file));
    expect(manifests.filter((file) => !sources.includes(file))).toEqual([]);
  });

  it('runs as a numbered user, is asked for its health, and starts without a shell', () => {
    expect(last('USER')?.getArgumentsContent()).toBe('65532:65532');
    expect(last('STOPSIGNAL')?.getArgumentsContent()).toBe('SIGTERM');
    expect(last('HEALTHCHECK')?.getArgumentsContent()).toMatch(/CMD\s+\[/);
    expect(last('ENTRYPOINT')?.getArgumentsContent()).toMatch(/^\["node", "\/app\/bin\/inference-\w+\.js"\]$/);
    expect(last('VOLUME')?.getArgumentsContent()).toBe('/data');
  });
});

/** The images must contain the same Node and the same libraries. */
it('both images use the same bases', () => {
  const argumentsOf = (name: string) =>
    readFileSync(join(ROOT, `deploy/${name}.Dockerfile`), 'utf8').match(/^ARG (?:NODE|RUNTIME)_IMAGE=.*$/gm);
  expect(argumentsOf('agent')).toEqual(argumentsOf('coordinator'));
});
