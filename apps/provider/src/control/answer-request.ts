/** `answerRequest` handles a request on the control socket by a table of routes, with bounded bodies. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { systemProblem } from '../files/system-error.js';
import { BadBody, ControlRefusal, type ControlRoute } from './route.js';

const MAX_BODY_BYTES = 64 * 1024;

export async function answerRequest(routes: readonly ControlRoute[], request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '').split('?')[0];
  const here = routes.filter((route) => route.path === path);
  const route = here.find(({ method }) => method === request.method);
  if (route === undefined) {
    const allow = here.map(({ method }) => method).join(', ');
    if (allow === '') reply(response, 404, refusal('not_found', 'there is nothing at this address'));
    else reply(response, 405, refusal('method_not_allowed', `this address takes ${allow}`), { allow });
    return;
  }
  try {
    reply(response, 200, (await route.answer(await bodyOf(request))) ?? {});
  } catch (error) {
    const message = error instanceof Error ? error.message : 'unknown';
    if (error instanceof BadBody) reply(response, 400, refusal('bad_body', message));
    else if (error instanceof ControlRefusal) reply(response, 409, refusal(error.code, message));
    else reply(response, 500, refusal('internal', systemProblem(error) ?? message));
  }
}

function refusal(code: string, message: string): unknown {
  return { error: { code, message } };
}

function reply(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** Parsed body; undefined if empty. Throws {@link BadBody}. */
async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += (part as Buffer).length;
    if (bytes > MAX_BODY_BYTES) throw new BadBody(`the body is longer than ${MAX_BODY_BYTES} bytes`);
    parts.push(part as Buffer);
  }
  if (bytes === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new BadBody('the body is not JSON');
  }
}
