/**
 * Talks to a GGUF model through llama.cpp.
 *
 *   npx tsx scripts/demo-models/text/chat.ts pico.gguf                          a conversation on the terminal
 *   npx tsx scripts/demo-models/text/chat.ts pico.gguf "Hello" "What is 4 + 9?" these turns, then stops
 *
 * --system TEXT gives a system prompt, --tools offers a weather tool, --tokens N limits each answer (default 300).
 */
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { defineChatSessionFunction, getLlama, LlamaChatSession, resolveChatWrapper } from 'node-llama-cpp';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    system: { type: 'string', default: '' },
    tools: { type: 'boolean', default: false },
    tokens: { type: 'string', default: '300' },
  },
});
const [modelPath, ...questions] = positionals;
const maxTokens = Number(values.tokens);
if (!modelPath || !(maxTokens > 0)) {
  process.stderr.write('usage: chat.ts MODEL.gguf [QUESTION...] [--system TEXT] [--tools] [--tokens N]\n');
  process.exit(2);
}

const functions = {
  get_weather: defineChatSessionFunction({
    description: 'Get the weather for a city',
    params: { type: 'object', properties: { city: { type: 'string' } } },
    handler({ city }) {
      console.log(`  [get_weather ${JSON.stringify(city)}]`);
      return { temperature: 21, condition: 'sunny' };
    },
  }),
};

const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1 });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: Math.min(2048, model.trainContextSize), threads: 1 });
const chatWrapper = resolveChatWrapper(model);
const session = new LlamaChatSession({
  contextSequence: context.getSequence(),
  systemPrompt: values.system,
  chatWrapper,
});
console.log(`${model.fileInfo.metadata.general.name ?? modelPath}, template read as ${chatWrapper.wrapperName}`);

async function ask(question: string): Promise<void> {
  let thought = '';
  const { responseText, stopReason } = await session.promptWithMeta(question, {
    temperature: 0,
    maxTokens,
    ...(values.tools ? { functions } : {}),
    onResponseChunk(chunk) {
      if (chunk.type === 'segment' && chunk.segmentType === 'thought') thought += chunk.text;
    },
  });
  if (thought.trim()) console.log(`  (${thought.trim().replaceAll('\n', '; ')})`);
  console.log(`${responseText}${stopReason === 'eogToken' ? '' : ` [${stopReason}]`}`);
}

if (questions.length > 0) {
  for (const question of questions) {
    console.log(`> ${question}`);
    await ask(question);
  }
} else {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' });
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim()) await ask(line.trim());
    terminal.prompt();
  }
}
await llama.dispose();
