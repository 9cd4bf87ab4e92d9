/**
 * Prints problems of GitHub workflows, one per line: `tsx scripts/ci/lint-workflows.ts FILE…`.
 *
 * GitHub's own parser checks keys, types, expressions and job dependencies. The patterns below are this repository's rules.
 */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser';

/** Actions must be pinned to a commit, because they run with the repository's tokens, and tags can move. */
const USES = /^\s*(?:- )?uses: *(\S+)(?: # v\d+(?:\.\d+)*)?$/gm;
const PINNED = /^(?:\.\/|[\w.-]+\/[\w./-]+@[0-9a-f]{40}$)/;
const PIN_WITH_VERSION = /@[0-9a-f]{40} # v\d/;
/** Untrusted input, such as pull request titles, must reach scripts through `env`. Inline, it would run as code. */
const INLINE_INPUT = /run:[^\n]*\$\{\{ *(?:github\.(?:event|head_ref|ref_name)|inputs)\b/;

export async function problemsOf(name: string, content: string): Promise<string[]> {
  const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter());
  if (value !== undefined) await convertWorkflowTemplate(context, value);
  const problems = [...new Set(context.errors.getErrors().map(({ message }) => message))];
  for (const [line, action = ''] of content.matchAll(USES)) {
    if (!PINNED.test(action)) problems.push(`${name}: ${action} is not pinned by commit`);
    else if (!action.startsWith('./') && !PIN_WITH_VERSION.test(line)) problems.push(`${name}: ${action} does not name its version`);
  }
  if (!/^permissions:\n {2}contents: read$/m.test(content)) problems.push(`${name}: the default permissions are not contents: read`);
  if (INLINE_INPUT.test(content)) problems.push(`${name}: a script contains an input as text: pass it through env`);
  return problems;
}

const found: string[] = [];
for (const path of process.argv.slice(2)) found.push(...(await problemsOf(basename(path), readFileSync(path, 'utf8'))));
process.stdout.write(`${JSON.stringify(found)}\n`);
