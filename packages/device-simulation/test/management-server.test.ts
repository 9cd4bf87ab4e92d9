import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type PlistValue, parse } from 'plist';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addressOf, closeServer, listenLocally } from '../../../test/support/local-server.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { FakeMac, ManagementServer, SimulatedAuthority } from '../src/index.js';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const DAY = 86_400_000;
const authority = SimulatedAuthority.create({ now: Date.now() - DAY, random: (bytes) => new Uint8Array(randomBytes(bytes)) });

interface Event {
  readonly topic: string;
  readonly acknowledge_event?: {
    readonly udid: string;
    readonly command_uuid: string;
    readonly status: string;
    readonly raw_payload: string;
  };
  readonly checkin_event?: { readonly url_params: Record<string, string>; readonly raw_payload: string };
}

/** Webhook events, as a coordinator would receive them. */
let events: Event[];
let receiver: Server;
let directory: string;

beforeEach(async () => {
  events = [];
  directory = temporaryDirectory('device-simulation');
  receiver = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    events.push(JSON.parse(Buffer.concat(chunks).toString()) as Event);
    response.end('{}');
  });
  await listenLocally(receiver);
});
afterEach(async () => {
  await closeServer(receiver);
});

const receiverUrl = (): string => addressOf(receiver);
const start = (stateFile?: string): Promise<ManagementServer> =>
  ManagementServer.start({
    authority,
    apiKey: 'key',
    webhook: { url: receiverUrl(), secret: 'a secret' },
    ...(stateFile === undefined ? {} : { stateFile }),
  });

const authorization = `Basic ${Buffer.from('nanomdm:key').toString('base64')}`;
const profile = (token: string): string =>
  build({ PayloadContent: [{ PayloadType: 'com.apple.mdm', CheckInURL: `https://mdm.example/mdm?enrolment=${token}` }] });
const command = (uuid: string, content: Record<string, PlistValue>): string => build({ CommandUUID: uuid, Command: content });
const plistOf = (base64: string): Record<string, PlistValue> =>
  parse(Buffer.from(base64, 'base64').toString()) as Record<string, PlistValue>;

describe('the simulated management server', () => {
  it('takes commands as NanoMDM does, and its Macs answer by webhook', async () => {
    const server = await start();
    try {
      const mac = server.addMac();
      const { udid, serialNumber } = mac.identity;
      const enqueue = (id: string, body: string, headers = { authorization }): Promise<Response> =>
        fetch(`${server.url}/v1/enqueue/${id}`, { method: 'PUT', body, headers });
      expect((await enqueue(udid, command('C1', { RequestType: 'SecurityInfo' }), { authorization: 'Basic eA==' })).status).toBe(401);
      const before = await enqueue(udid, command('C1', { RequestType: 'SecurityInfo' }));
      expect([before.status, await before.json()]).toMatchObject([207, { status: { [udid]: { command_error: expect.any(String) } } }]);

      await server.enrol(udid, profile('token'));
      expect(events.map(({ topic }) => topic)).toEqual(['mdm.Authenticate', 'mdm.TokenUpdate']);
      expect(events[0]?.checkin_event?.url_params).toEqual({ enrolment: 'token' });
      expect(plistOf(events[0]?.checkin_event?.raw_payload ?? '')).toMatchObject({ UDID: udid, SerialNumber: serialNumber });

      const answer = await enqueue(udid, command('C2', { RequestType: 'SecurityInfo' }));
      expect([answer.status, await answer.json()]).toEqual([
        200,
        { status: { [udid]: { push_result: expect.any(String) } }, command_uuid: 'C2', request_type: 'SecurityInfo' },
      ]);
      await server.settled();
      const report = events.at(-1)?.acknowledge_event;
      expect(report).toMatchObject({ udid, command_uuid: 'C2', status: 'Acknowledged' });
      expect(plistOf(report?.raw_payload ?? '')).toMatchObject({
        SecurityInfo: { SystemIntegrityProtectionEnabled: true, FDE_Enabled: true },
      });
    } finally {
      await server.close();
    }
  });

  it('still manages its Macs when it is started again', async () => {
    const stateFile = join(directory, 'macs.json');
    const first = await start(stateFile);
    const mac = first.addMac({}, { protections: { sipEnabled: false } });
    await first.enrol(mac.identity.udid, profile('token'));
    await first.close();
    const second = await start(stateFile);
    try {
      expect(second.mac(mac.identity.udid)).toMatchObject({ identity: mac.identity, protections: { sipEnabled: false } });
      await second.report(mac.identity.udid, { uuid: 'C', requestType: 'SecurityInfo', nonce: null });
      expect(events.at(-1)).toMatchObject({ acknowledge_event: { url_params: { enrolment: 'token' } } });
    } finally {
      await second.close();
    }
  });

  it("runs as a program that sends the coordinator's settings to its parent", async () => {
    const child: ChildProcess = spawn(process.execPath, [MAIN], {
      env: { DATA_DIR: directory },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const next = (): Promise<Record<string, unknown>> =>
      new Promise((resolve) => child.once('message', (message) => resolve(message as never)));
    const facts = (await next()) as { coordinator_env: Record<string, string>; management_url: string };
    expect(Object.keys(facts.coordinator_env).sort()).toEqual(
      ['MDM_ACME_DIRECTORY_URL', 'MDM_API_KEY', 'MDM_TOPIC', 'MDM_URL', 'MDM_WEBHOOK_SECRET', 'SIMULATED_DEVICE_AUTHORITY'].sort(),
    );
    const told = next();
    child.send({ coordinator: receiverUrl() });
    await told;
    const body = JSON.stringify({ profile: profile('token').replace('<array>', `<array>${ACME}`) });
    const installed = await fetch(`${facts.management_url}/simulation/v1/install`, { method: 'POST', body });
    // The profile names no reachable ACME server, so the Mac gets no identity and is not enrolled.
    expect(installed.status).toBe(400);
    expect(events).toEqual([]);
    child.kill('SIGTERM');
    expect(await exited).toBe(0);
  });
});

const ACME =
  '<dict><key>PayloadType</key><string>com.apple.security.acme</string><key>DirectoryURL</key><string>http://127.0.0.1:9/acme</string>' +
  '<key>ClientIdentifier</key><string>SIM0000001</string></dict>';

describe('a simulated Mac', () => {
  it('shows a cached attestation until a week has passed, and then one that is fresh by the nonce it is given', () => {
    let now = Date.now();
    const identity = {
      serialNumber: 'SIM0000001',
      udid: 'A',
      provisioningUdid: '00006041-0123456789ABCDEF',
      softwareUpdateDeviceId: 'J575cAP',
      hardwareModel: 'Mac16,9',
      osVersion: '26.1',
    };
    const mac = new FakeMac({ identity, authority, now: () => now });
    const leafFor = (byte: number): string => {
      const answer = mac.answer({ uuid: 'C', requestType: 'DeviceInformation', nonce: new Uint8Array(32).fill(byte) });
      const { QueryResponses } = parse(Buffer.from(answer?.rawPlist ?? '').toString()) as {
        QueryResponses: { DevicePropertiesAttestation: Uint8Array[] };
      };
      return Buffer.from(QueryResponses.DevicePropertiesAttestation[0] ?? '').toString('hex');
    };
    const first = leafFor(0x11);
    expect(first).toContain('11'.repeat(32));
    expect(leafFor(0x22)).toBe(first);
    now += 8 * DAY;
    expect(leafFor(0x11)).toBe(first);
    expect(leafFor(0x22)).toContain('22'.repeat(32));
  });
});
