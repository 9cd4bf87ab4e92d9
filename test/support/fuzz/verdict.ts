/** Finds faults in the response to a fuzzed request: status, error shape, and content that no response may contain. */
import type { Answer, Fuzzed, Target } from './exchange.js';
import { MARKUP } from './mutate.js';

/** Maximum length of a refusal's message. */
const MAX_MESSAGE_LENGTH = 2000;
/** Names and indices, as in `messages[0].content[1].text`. */
const FIELD = /^[A-Za-z_][\w-]*(?:\[\d{1,9}\]|\.[\w$-]{1,64})*$/;
const OPENAI_TYPES = ['invalid_request_error', 'insufficient_quota', 'permission_error', 'rate_limit_error', 'server_error'];
const ANTHROPIC_TYPES = [
  'invalid_request_error',
  'authentication_error',
  'billing_error',
  'permission_error',
  'not_found_error',
  'request_too_large',
  'rate_limit_error',
  'api_error',
  'timeout_error',
  'overloaded_error',
];

/** Returns a line for each fault. */
export function faultsOf(request: Fuzzed, answer: Answer | null, target: Target): string[] {
  if (answer === null) return request.validHttp ? ['the server hung up without an answer'] : [];
  const faults: string[] = [];
  const fault = (isOne: boolean, text: string): void => void (isOne && faults.push(text));
  const { status, headers, body } = answer;
  const text = body.toString('utf8');
  const everything = `${JSON.stringify(headers)}${text}`;
  fault(everything.includes(target.apiKey), 'the API key is in the answer');
  fault(/node_modules|\bat .*\.js:\d+/.test(everything), 'a stack trace is in the answer');
  fault(JSON.stringify(headers).includes('script>'), 'markup of the request is in a header');
  fault(!headers['x-request-id'], 'there is no x-request-id');
  if (status === 200) return [...faults, ...faultsOfSuccess(request, headers, text)];
  fault(!(status >= 400 && status < 500) && !isRefusalForWantOfProvider(status, text), `status ${status}`);
  fault(text.length > MAX_MESSAGE_LENGTH, `an error of ${text.length} characters`);
  fault(text.includes(MARKUP), 'markup of the request is in the error');
  fault(!/^application\/json/.test(headers['content-type'] ?? ''), `an error of type ${headers['content-type']}`);
  if (!request.validHttp) return faults;
  let error: unknown;
  try {
    error = JSON.parse(text);
  } catch {
    return [...faults, 'an error that is no JSON'];
  }
  return [...faults, ...(request.path.startsWith('/v1/messages') ? faultsOfAnthropic(error, headers) : faultsOfOpenAi(error))];
}

/** Fuzzed requests may name a provider that does not exist. */
function isRefusalForWantOfProvider(status: number, text: string): boolean {
  return (status === 503 && text.includes('"provider_not_available"')) || (status === 529 && text.includes('"overloaded_error"'));
}

function faultsOfSuccess(request: Fuzzed, headers: Answer['headers'], text: string): string[] {
  const type = headers['content-type'] ?? '';
  if (/^text\/event-stream/.test(type)) {
    const anthropic = request.path === '/v1/messages';
    const whole = anthropic ? /\nevent: message_stop\n/.test(text) : text.endsWith('data: [DONE]\n\n');
    return whole && text.includes('se_signature') ? [] : [`a stream that ends with ${JSON.stringify(text.slice(-200))}`];
  }
  try {
    JSON.parse(text);
  } catch {
    return [`an answer of type ${type} that is no JSON`];
  }
  return headers['x-se-signature'] ? [] : ['an answer without signature'];
}

function faultsOfOpenAi(body: unknown): string[] {
  if (keysOf(body) !== 'error') return [`members ${keysOf(body)} around an error`];
  const { error } = body as { error: Record<string, unknown> };
  if (keysOf(error) !== 'code,message,param,type') return [`members ${keysOf(error)} in an error`];
  const faults: string[] = [];
  if (typeof error.message !== 'string' || !isSentence(error.message)) faults.push(`message ${JSON.stringify(error.message)}`);
  if (!OPENAI_TYPES.includes(error.type as string)) faults.push(`type ${JSON.stringify(error.type)}`);
  if (typeof error.code !== 'string' || !/^[a-z_]+$/.test(error.code)) faults.push(`code ${JSON.stringify(error.code)}`);
  if (error.param !== null && !(typeof error.param === 'string' && error.param.length <= 200 && FIELD.test(error.param))) {
    faults.push(`param ${JSON.stringify(error.param)}`);
  }
  return faults;
}

function faultsOfAnthropic(body: unknown, headers: Answer['headers']): string[] {
  if (keysOf(body) !== 'error,request_id,type') return [`members ${keysOf(body)} around an error`];
  const { type, error, request_id } = body as { type: unknown; error: Record<string, unknown>; request_id: unknown };
  const faults: string[] = [];
  if (type !== 'error') faults.push(`type ${JSON.stringify(type)} around an error`);
  if (request_id !== headers['request-id']) faults.push(`request_id ${JSON.stringify(request_id)} is not that of the header`);
  if (keysOf(error) !== 'message,type') return [...faults, `members ${keysOf(error)} in an error`];
  if (!ANTHROPIC_TYPES.includes(error.type as string)) faults.push(`type ${JSON.stringify(error.type)}`);
  if (typeof error.message !== 'string' || !isSentence(error.message)) faults.push(`message ${JSON.stringify(error.message)}`);
  return faults;
}

/** Whether a message has a plausible length and no control characters. */
function isSentence(message: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters.
  return message.length > 5 && message.length <= 600 && !/[\u0000-\u001f\u007f\ufffd]/.test(message);
}

function keysOf(value: unknown): string {
  return typeof value === 'object' && value !== null ? Object.keys(value).sort().join() : typeof value;
}
