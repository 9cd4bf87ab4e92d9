import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type DeviceCommand, encodeCommand } from '../../src/devices/commands.js';
import { ManagementClient, type ManagementClientOptions } from '../../src/devices/management-client.js';
import { parsePlist } from '../../src/devices/plist/plist.js';

const COMMAND: DeviceCommand = { kind: 'security_info', uuid: 'B8D10E0C-0001' };
const DEVICE = 'A0000000-0000-0000-0000-00000000000A';
const ANSWER = { status: { [DEVICE]: { push_result: 'x' } }, command_uuid: COMMAND.uuid, request_type: 'SecurityInfo' };

let server: Server | null = null;
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => (server === null ? resolve(null) : server.close(resolve)));
  server = null;
});

interface Seen {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly authorization: string | undefined;
  readonly body: string;
}

async function serve(handle: (response: ServerResponse, call: number) => void): Promise<Seen[]> {
  const seen: Seen[] = [];
  server = createServer(async (request: IncomingMessage, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method, url: path, headers } = request;
    seen.push({ method, path, authorization: headers.authorization, body: Buffer.concat(chunks).toString() });
    handle(response, seen.length);
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  return seen;
}

function client(options: Partial<ManagementClientOptions> = {}): ManagementClient {
  const { port } = (server as Server).address() as AddressInfo;
  return new ManagementClient({
    url: `http://127.0.0.1:${port}/`,
    apiKey: 'key',
    firstPauseMs: 1,
    timeoutMs: 10_000,
    random: () => 0,
    ...options,
  });
}

const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

const never = new AbortController().signal;

describe('the client of a management server', () => {
  it('enqueues a command as a raw property list and reports whether the push was sent', async () => {
    const seen = await serve((response) => json(response, 200, ANSWER));
    expect(await client().enqueue(DEVICE, COMMAND, never)).toEqual({ pushed: true });
    expect(seen).toEqual([
      {
        method: 'PUT',
        path: `/v1/enqueue/${DEVICE}`,
        authorization: `Basic ${Buffer.from('nanomdm:key').toString('base64')}`,
        body: encodeCommand(COMMAND),
      },
    ]);
    expect(parsePlist(Buffer.from(seen[0]?.body ?? ''))).toEqual({
      ok: true,
      value: new Map<string, unknown>([
        ['CommandUUID', COMMAND.uuid],
        ['Command', new Map([['RequestType', 'SecurityInfo']])],
      ]),
    });
  });

  it('queries identity and attestation in one command, with the nonce as data', () => {
    const nonce = new Uint8Array(32).fill(9);
    const parsed = parsePlist(Buffer.from(encodeCommand({ kind: 'device_information', uuid: 'U', nonce })));
    expect(parsed.ok && parsed.value instanceof Map && parsed.value.get('Command')).toEqual(
      new Map<string, unknown>([
        ['RequestType', 'DeviceInformation'],
        ['Queries', ['SerialNumber', 'ProvisioningUDID', 'SoftwareUpdateDeviceID', 'DevicePropertiesAttestation']],
        ['DeviceAttestationNonce', nonce],
      ]),
    );
    expect(() => encodeCommand({ kind: 'device_information', uuid: 'U', nonce: new Uint8Array(33) })).toThrow(RangeError);
  });

  it('pushes, and reports an unsent push', async () => {
    const seen = await serve((response, call) =>
      json(response, 200, { status: { [DEVICE]: call === 1 ? { push_result: 'x' } : { push_error: 'no topic' } } }),
    );
    expect(await client().push(DEVICE, never)).toEqual({ pushed: true });
    expect(await client().push(DEVICE, never)).toEqual({ pushed: false });
    expect(seen[0]?.path).toBe(`/v1/push/${DEVICE}`);
  });

  it('retries transient failures, at most three times', async () => {
    const seen = await serve((response, call) => (call < 3 ? json(response, 503, {}) : json(response, 200, ANSWER)));
    await client().enqueue(DEVICE, COMMAND, never);
    expect(seen).toHaveLength(3);
    await expect(client({ url: 'http://127.0.0.1:1' }).enqueue(DEVICE, COMMAND, never)).rejects.toMatchObject({
      code: 'management_unreachable',
    });
  });

  it.each([
    ['management_unauthorized', 401, {}, 1],
    ['management_unknown_device', 404, {}, 1],
    ['management_unknown_device', 207, { ...ANSWER, status: { [DEVICE]: { command_error: 'no such id' } } }, 1],
    ['management_unavailable', 500, {}, 3],
    ['management_bad_answer', 302, {}, 1],
    ['management_bad_answer', 200, { hello: 'world' }, 1],
    ['management_bad_answer', 200, { ...ANSWER, command_uuid: 'another' }, 1],
    ['management_bad_answer', 200, { ...ANSWER, padding: 'x'.repeat(100_000) }, 1],
  ])('fails with %s on status %i', async (code, status, body, calls) => {
    const seen = await serve((response) => json(response, status, body));
    await expect(client().enqueue(DEVICE, COMMAND, never)).rejects.toMatchObject({ code });
    expect(seen).toHaveLength(calls);
  });

  it('times out on a silent server, and aborts at once', async () => {
    await serve(() => {});
    await expect(client({ maxAttempts: 1, timeoutMs: 30 }).enqueue(DEVICE, COMMAND, never)).rejects.toMatchObject({
      code: 'management_unreachable',
    });
    const stop = new AbortController();
    const call = client({ timeoutMs: 60_000 }).enqueue(DEVICE, COMMAND, stop.signal);
    stop.abort();
    await expect(call).rejects.toMatchObject({ code: 'management_unreachable' });
  });
});
