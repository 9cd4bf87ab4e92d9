/** Whole program against a strict coordinator: sealed jobs in, verified responses out. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Answer, FakeCoordinator, type FakeProviderSession } from '../support/fake-coordinator.js';
import { childrenOf, isAlive, ProviderProcess } from '../support/provider-process.js';

let coordinator: FakeCoordinator;
let provider: ProviderProcess;
let session: FakeProviderSession;

beforeAll(async () => {
  coordinator = await FakeCoordinator.listen();
  provider = ProviderProcess.start(coordinator.url, ['--simulated-enclave', '--slots', '4', '--context', '1024']);
  session = await provider.whileItRuns(coordinator.session());
  await session.admit();
  await provider.logged('registered');
});

afterAll(async () => {
  await provider.dispose();
  await coordinator.close();
});

const capital = { messages: [{ role: 'user', content: 'What is the capital of France?' }], temperature: 0 };

test('registers with model, slots and a declared simulated enclave', () => {
  expect(session.register).toMatchObject({ slots: 4, models: [{ model_type: 'text', quantization: '8bit', context_length: 1024 }] });
  expect(session.register?.models[0]?.id).toMatch(/^pico/);
  expect(session.attestation).toMatchObject({ key_protection: 'software', posture: { secure_enclave: false } });
});

test("logs the coordinator's trust message as one line", async () => {
  session.send({
    type: 'trust',
    trust_level: 'none',
    routable: false,
    status: 'untrusted',
    status_remedy: 'Ask the operator.',
    parts: [{ name: 'posture', state: 'failed', reason: 'sip_disabled', remedy: 'Turn it on.\u001b[2J' }],
  });
  const line = await provider.logged('trust');
  expect(line).toMatchObject({ trust_level: 'none', routable: false, status: 'untrusted', gaps: [{ reason: 'sip_disabled' }] });
  expect(line.msg).toBe('no trust, gets NO requests (untrusted); posture is failed. Ask the operator. Turn it on. [2J');
});

test('answers a plain request with a signed body', async () => {
  const answer = await session.submit({ ...capital, max_tokens: 50 });
  expect(answer.failure).toBeNull();
  expect(answer.accepted).toBe(true);
  const body = JSON.parse(answer.body);
  expect(body.choices[0].message.content).toContain('Paris');
  expect(body.choices[0].finish_reason).toBe('stop');
  expect(answer.receipt).toMatchObject({ finish_reason: 'stop', usage: body.usage && { total_tokens: body.usage.total_tokens } });
});

test('streams chunks as they are generated and signs all of their bytes', async () => {
  // Long enough that no pause of a busy machine gathers all of its text in two frames.
  const story = { messages: [{ role: 'user', content: 'Tell me a story about Mia.' }], temperature: 0, max_tokens: 200 };
  const answer = await session.submit({ ...story, stream: true, stream_options: { include_usage: true } });
  expect(answer.failure).toBeNull();
  const events = answer.body.split('\n\n').filter((event) => event !== '');
  expect(events.every((event) => event.startsWith('data: {'))).toBe(true);
  expect(events.length).toBeGreaterThan(4);
  expect(answer.frames).toBeGreaterThan(2);
  expect(answer.body).not.toContain('[DONE]');
  const last = JSON.parse(events.at(-1)?.slice(6) ?? '');
  expect(last.usage.completion_tokens).toBe(answer.receipt?.usage.completion_tokens);
});

test('calls a tool, and answers with its result', async () => {
  const parameters = { type: 'object', properties: { city: { type: 'string', description: 'The name of the city' } }, required: ['city'] };
  const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Get the weather for a city', parameters } }];
  const question = { role: 'user', content: 'What is the weather in Lima?' };
  const called = await session.submit({ messages: [question], tools, temperature: 0, max_tokens: 200 });
  const [choice] = JSON.parse(called.body).choices;
  expect(choice.finish_reason).toBe('tool_calls');
  expect(called.receipt?.finish_reason).toBe('tool_calls');
  const [call] = choice.message.tool_calls;
  expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } });
  expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Lima' });
  const result = { role: 'tool', tool_call_id: call.id, content: '{"temperature": 23, "condition": "sunny"}' };
  const told = await session.submit({ messages: [question, choice.message, result], tools, temperature: 0, max_tokens: 200 });
  expect(JSON.parse(told.body).choices[0].message.content).toMatch(/23.*sunny/);
});

test('makes a forced tool call for any prompt', async () => {
  const parameters = { type: 'object', properties: { days: { type: 'integer' }, unit: { enum: ['C', 'F'] } }, required: ['days'] };
  const tools = ['forecast', 'history'].map((name) => ({ type: 'function', function: { name, parameters } }));
  const named = { type: 'function', function: { name: 'history' } };
  for (const [choice, names] of [
    ['required', ['forecast', 'history']],
    [named, ['history']],
  ] as const) {
    const answer = await session.submit({ ...capital, temperature: 1, tools, tool_choice: choice, max_tokens: 200 });
    expect(answer.failure).toBeNull();
    const [{ message, finish_reason }] = JSON.parse(answer.body).choices;
    expect(finish_reason).toBe('tool_calls');
    expect(names).toContain(message.tool_calls[0].function.name);
    const given = JSON.parse(message.tool_calls[0].function.arguments);
    expect(given).toMatchObject({ days: expect.any(Number) });
    expect(['C', 'F', undefined]).toContain(given.unit);
  }
});

test('counts tokens as the engine does for an answer', async () => {
  const messages = [{ role: 'user', content: 'What is the capital of France?' }];
  const context = { endpoint: '/v1/messages/count_tokens', max_tokens: 1, overrides: {} } as const;
  const counted = await session.submit({ messages }, { context });
  expect(counted.failure).toBeNull();
  const answered = await session.submit({ messages, max_tokens: 1 });
  expect(JSON.parse(counted.body)).toEqual({ input_tokens: answered.receipt?.usage.prompt_tokens });
  expect(counted.receipt?.usage.completion_tokens).toBe(0);
});

test('strips think sections and counts their tokens', async () => {
  const answer = await session.submit({ messages: [{ role: 'user', content: 'What is 7 + 8?' }], temperature: 0, max_tokens: 120 });
  const body = JSON.parse(answer.body);
  expect(body.choices[0].message.content).not.toContain('think');
  expect(answer.receipt?.hidden_tokens).toBeGreaterThan(0);
  expect(body.usage.completion_tokens_details.reasoning_tokens).toBe(answer.receipt?.hidden_tokens);
});

test('honours max_tokens exactly and stops at stop sequences', async () => {
  const story = { messages: [{ role: 'user', content: 'Tell me a story about Mia.' }], temperature: 0, seed: 1 };
  const cut = await session.submit({ ...story, max_tokens: 5 });
  expect(cut.receipt).toMatchObject({ finish_reason: 'length', usage: { completion_tokens: 5 } });
  const whole = JSON.parse((await session.submit({ ...story, max_tokens: 60 })).body).choices[0].message.content as string;
  const word = whole.split(' ')[3] as string;
  const stopped = await session.submit({ ...story, max_tokens: 60, stop: [word] });
  expect(stopped.receipt?.finish_reason).toBe('stop');
  expect(JSON.parse(stopped.body).choices[0].message.content).toBe(whole.slice(0, whole.indexOf(word)));
});

test('refuses a prompt longer than the context, with both lengths', async () => {
  const answer = await session.submit({ messages: [{ role: 'user', content: 'moon tiger bread '.repeat(600) }], max_tokens: 5 });
  expect(answer.failure).toMatchObject({ code: 'context_length_exceeded', limit: 1024 });
  expect(answer.failure?.actual).toBeGreaterThan(1024);
});

test('answers challenges and ignores unknown messages', async () => {
  session.send({ type: 'weather_report' });
  session.send({ type: 'challenge', nonce: Buffer.alloc(32, 7).toString('base64') });
  expect(await session.next('challenge_answer')).toBeTruthy();
});

test('stops a cancelled stream and signs the part that was sent', async () => {
  const answer = await session.submit(
    { messages: [{ role: 'user', content: 'Tell me a story about Mia.' }], stream: true, temperature: 1, max_tokens: 900 },
    { cancelAfterBytes: 1 },
  );
  expect(answer.failure).toBeNull();
  // A short story may be over before the cancel arrives.
  if (answer.receipt?.finish_reason === 'cancelled') {
    expect(answer.receipt.usage.completion_tokens).toBeLessThan(900);
    expect(answer.body).not.toMatch(/"finish_reason":"/);
    expect(answer.body.endsWith('\n\n')).toBe(true);
  } else expect(answer.receipt?.finish_reason).toMatch(/^(stop|length)$/);
  expect((await session.submit({ ...capital, max_tokens: 20 })).failure).toBeNull();
});

test('a killed engine fails running jobs only, and comes back by itself', async () => {
  const engine = childrenOf(provider.child.pid ?? 0).find(({ command }) => command.includes('/engine/process/'));
  // Rewards for repeating keep the small model from ending before the kill.
  const messages = [{ role: 'user', content: 'Count from 1 to 9.' }];
  const endless = { ...capital, messages, presence_penalty: -2, frequency_penalty: -2, stream: true, max_tokens: 900 };
  const { running } = await begun(endless);
  process.kill(engine?.pid ?? 0, 'SIGKILL');
  expect((await running).failure).toEqual({ code: 'engine_failed' });
  await nextModels('loading');
  await nextModels('ready');
  expect((await session.submit({ ...capital, max_tokens: 20 })).failure).toBeNull();
});

/** Starts a job that waits for credit after its first byte. Resolves when the byte has come. */
async function begun(request: Record<string, unknown>): Promise<{ readonly running: Promise<Answer> }> {
  return new Promise((resolve) => {
    const running: Promise<Answer> = session.submit(request, { credit: 1, grant: false, onFirstBytes: () => resolve({ running }) });
  });
}

/** Skips earlier lists until the model has this state. */
async function nextModels(state: string) {
  for (;;) {
    const message = await session.next('models');
    if (message.models[0]?.state === state) return message;
  }
}

test('comes back with the same identity when the connection is lost', async () => {
  const before = session;
  before.close();
  session = await provider.whileItRuns(coordinator.session());
  await session.admit();
  expect(session.publicKey).toEqual(before.publicKey);
  expect(session.key?.key_id).not.toBe(before.key?.key_id);
  expect((await session.submit({ ...capital, max_tokens: 20 })).failure).toBeNull();
});

test('the log holds no prompts and answers', () => {
  expect(provider.stdout).not.toMatch(/France|Paris|Mia|tiger/);
  expect(provider.stderr).toBe('');
});

test('finishes running jobs on stop and leaves no process', async () => {
  const children = childrenOf(provider.child.pid ?? 0);
  expect(children.length).toBeGreaterThanOrEqual(2);
  const { running } = await begun({ ...capital, stream: true, max_tokens: 60 });
  provider.child.kill('SIGTERM');
  expect(await session.next('draining')).toBeTruthy();
  for (const job_id of session.openJobs()) session.send({ type: 'credit', job_id, bytes: 1 << 20 });
  expect((await running).failure).toBeNull();
  expect(await provider.exit).toEqual({ code: 0, signal: null });
  await expect.poll(() => children.filter(({ pid }) => isAlive(pid))).toEqual([]);
});
