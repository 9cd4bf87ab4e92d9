/**
 * Smoke test of an installed agent: `tsx scripts/release/try.ts PROGRAM [MODEL.gguf]`.
 *
 * Checks the version, `doctor`, and one request with a simulated enclave, by default with the demo model.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startCoordinatorAlone } from '../network/network.js';
import { ROOT } from './manifest.js';

const ANSWER_MS = 120_000;

const [program, model = join(ROOT, 'apps/provider/demo-models/pico/pico.gguf')] = process.argv.slice(2);
if (program === undefined) throw new Error('usage: scripts/release/try.ts PROGRAM [MODEL.gguf]');
const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'try-'));
const dataDir = join(folder, 'agent');

console.log(`version ${(await run(program, ['--version'])).stdout.trim()}`);
const coordinator = await startCoordinatorAlone(join(folder, 'coordinator'), { ALLOW_SIMULATED_ENCLAVE: '1' });
const headers = { authorization: `Bearer ${coordinator.apiKey}`, 'content-type': 'application/json' };
const serve = ['serve', '--coordinator', coordinator.baseUrl, '--data-dir', dataDir, '--simulated-enclave', '--model', model];
const agent = spawn(program, serve, { stdio: ['ignore', 'ignore', 'inherit'] });
const ended = new Promise((resolve) => agent.once('exit', resolve));
try {
  console.log(await askForAnswer());
  const report = await run(program, ['doctor', '--json', '--data-dir', dataDir]).catch((error: { stdout: string }) => error);
  const { took_ms, checks } = JSON.parse(report.stdout) as { took_ms: number; checks: { name: string; state: string; text: string }[] };
  console.log(`doctor: ${checks.length} checks in ${took_ms} ms`);
  for (const { name, state, text } of checks) if (state === 'problem') console.log(`  ${name}: ${text}`);
} finally {
  agent.kill('SIGTERM');
  await ended;
  await coordinator.child.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function askForAnswer(): Promise<string> {
  const deadline = performance.now() + ANSWER_MS;
  for (;;) {
    const models = (await (await fetch(`${coordinator.baseUrl}/v1/models`, { headers })).json()) as { data: { id: string }[] };
    const [first] = models.data;
    if (first !== undefined) {
      const body = JSON.stringify({
        model: first.id,
        temperature: 0,
        messages: [{ role: 'user', content: 'What is the capital of France?' }],
      });
      const response = await fetch(`${coordinator.baseUrl}/v1/chat/completions`, { method: 'POST', headers, body });
      const answer = (await response.json()) as { choices?: { message: { content: string } }[] };
      const text = answer.choices?.[0]?.message.content;
      if (response.ok && text !== undefined) return `${first.id}: ${text} (signed: ${response.headers.has('x-se-signature')})`;
      throw new Error(`status ${response.status}: ${JSON.stringify(answer)}`);
    }
    if (performance.now() > deadline) throw new Error(`the agent served no model within ${ANSWER_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
