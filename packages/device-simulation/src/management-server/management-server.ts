/**
 * `ManagementServer` manages simulated Macs and offers the HTTP interface of NanoMDM (enqueue, push, webhook).
 *
 * Routes under `/simulation/v1` create, enrol and change Macs.
 */
import { randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type PlistValue, parse } from 'plist';
import { respondToChallenge } from '../acme/challenge.js';
import type { SimulatedAuthority } from '../certificate-authority/authority.js';
import { readBody } from '../read-body.js';
import { type EnrolmentProfile, readEnrolmentProfile } from './enrolment-profile.js';
import { FakeMac, type MacIdentity, type MacProtections, type Misbehaviour, type ReceivedCommand } from './fake-mac.js';
import { readMacs, writeMacs } from './saved-macs.js';
import { checkInEvent, reportEvent, type SendOptions, type SentEvent, sendEvent, type WebhookTarget } from './webhook-sender.js';

export interface ManagementServerOptions {
  readonly authority: SimulatedAuthority;
  readonly apiKey: string;
  /** Coordinator endpoint for events about Macs. */
  readonly webhook: WebhookTarget;
  readonly port?: number;
  readonly host?: string;
  readonly now?: () => number;
  /** Delay before a Mac answers a push, in milliseconds. */
  readonly answerAfterMs?: number;
  /** How long a Mac answers with the same attestation chain, in milliseconds. Default: seven days. */
  readonly renewMs?: number;
  /** File that persists Macs and enrolments across restarts. Default: none. */
  readonly stateFile?: string;
}

interface ManagedMac {
  readonly mac: FakeMac;
  readonly queue: ReceivedCommand[];
  /** Null while not enrolled. */
  profile: EnrolmentProfile | null;
  /** Settles when the pushes so far are processed. */
  answering: Promise<void>;
}

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_SENT_EVENTS = 1000;

export class ManagementServer {
  readonly #options: Required<Omit<ManagementServerOptions, 'renewMs' | 'stateFile'>> &
    Pick<ManagementServerOptions, 'renewMs' | 'stateFile'>;
  readonly #server: Server;
  /** Key: UDID. */
  readonly #macs = new Map<string, ManagedMac>();
  /** The latest {@link MAX_SENT_EVENTS} events, newest last. */
  readonly sent: SentEvent[] = [];
  /** Options for later events, except those of {@link report}. */
  sending: SendOptions = {};
  /** Replaced when the coordinator's address becomes known after the start. */
  webhook: WebhookTarget;

  private constructor(options: ManagementServerOptions) {
    this.#options = { port: 0, host: '127.0.0.1', now: Date.now, answerAfterMs: 0, ...options };
    this.webhook = options.webhook;
    this.#server = createServer((request, response) => void this.#handle(request, response));
  }

  static async start(options: ManagementServerOptions): Promise<ManagementServer> {
    const server = new ManagementServer(options);
    for (const { orders, ...saved } of options.stateFile === undefined ? [] : readMacs(options.stateFile)) {
      const mac = server.addMac(saved.identity, saved);
      server.#managed(mac.identity.udid).profile = orders;
    }
    await new Promise<void>((resolve, reject) => {
      server.#server.once('error', reject);
      server.#server.listen(server.#options.port, server.#options.host, resolve);
    });
    return server;
  }

  /** `http://host:port` */
  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `http://${address}:${port}`;
  }

  /** Creates a Mac that is not enrolled yet. */
  addMac(
    identity: Partial<MacIdentity> = {},
    more: { protections?: Partial<MacProtections>; misbehaviours?: readonly Misbehaviour[] } = {},
  ): FakeMac {
    const { authority, now, renewMs } = this.#options;
    const mac = new FakeMac({
      identity: { ...newIdentity(), ...identity },
      authority,
      now,
      ...(renewMs === undefined ? {} : { renewMs }),
      ...more,
    });
    this.#macs.set(mac.identity.udid, { mac, queue: [], profile: null, answering: Promise.resolve() });
    return mac;
  }

  /** Null for an unknown UDID. */
  mac(udid: string): FakeMac | null {
    return this.#macs.get(udid)?.mac ?? null;
  }

  /** Enrols a Mac with a profile: answers the ACME challenge if the profile requests a challenge, then checks in. */
  async enrol(udid: string, profileXml: string): Promise<void> {
    const managed = this.#managed(udid);
    managed.profile = readEnrolmentProfile(profileXml);
    if (managed.profile.acme !== null) await respondToChallenge(managed.mac, managed.profile.acme.directoryUrl);
    await this.#checkIn(managed, 'Authenticate');
    await this.#checkIn(managed, 'TokenUpdate');
    this.#save();
  }

  /** Enrols the Mac with the profile's serial number, creating the Mac if needed. */
  async enrolBySerial(profileXml: string): Promise<FakeMac> {
    const serialNumber = readEnrolmentProfile(profileXml).acme?.serialNumber;
    if (serialNumber === undefined) throw new TypeError('the profile names no serial number');
    const known = [...this.#macs.values()].find(({ mac }) => mac.identity.serialNumber === serialNumber)?.mac;
    const mac = known ?? this.addMac({ serialNumber });
    await this.enrol(mac.identity.udid, profileXml);
    return mac;
  }

  /** Removes a Mac from management. */
  async unenrol(udid: string): Promise<void> {
    const managed = this.#managed(udid);
    await this.#checkIn(managed, 'CheckOut');
    managed.profile = null;
    managed.queue.length = 0;
    this.#save();
  }

  /** Sends this Mac's answer to a command, queued or not. Resolves with the event and response; null if the Mac stays silent. */
  async report(udid: string, command: ReceivedCommand, options: SendOptions = {}): Promise<SentEvent | null> {
    const managed = this.#managed(udid);
    const answer = managed.mac.answer(command);
    return answer === null ? null : this.#send(reportEvent(udid, answer, managed.profile?.parameters ?? {}), options);
  }

  /** Resolves when the Macs have processed every push so far. */
  async settled(): Promise<void> {
    await Promise.all([...this.#macs.values()].map((managed) => managed.answering));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
    await this.settled();
  }

  #save(): void {
    const { stateFile } = this.#options;
    if (stateFile === undefined) return;
    const macs = [...this.#macs.values()].map(({ mac, profile }) => ({
      identity: mac.identity,
      protections: mac.protections,
      misbehaviours: [...mac.misbehaviours],
      orders: profile,
    }));
    writeMacs(stateFile, macs);
  }

  #managed(udid: string): ManagedMac {
    const managed = this.#macs.get(udid);
    if (managed === undefined) throw new RangeError('no Mac with this UDID');
    return managed;
  }

  async #checkIn(managed: ManagedMac, messageType: string): Promise<void> {
    const { udid } = managed.mac.identity;
    await this.#send(checkInEvent(udid, messageType, managed.mac.checkIn(messageType), managed.profile?.parameters ?? {}));
  }

  async #send(event: Record<string, unknown>, options: SendOptions = this.sending): Promise<SentEvent> {
    const sent = await sendEvent(this.webhook, event, this.#options.now(), options);
    this.sent.push(sent);
    if (this.sent.length > MAX_SENT_EVENTS) this.sent.shift();
    return sent;
  }

  /** Makes the Mac process its queue after earlier pushes. A failed send loses that answer and ends the push. */
  #push(managed: ManagedMac): void {
    managed.answering = managed.answering.then(() => this.#answerAll(managed)).catch(() => {});
  }

  async #answerAll(managed: ManagedMac): Promise<void> {
    const { answerAfterMs } = this.#options;
    if (answerAfterMs > 0) await new Promise((resolve) => setTimeout(resolve, answerAfterMs));
    for (let command = managed.queue.shift(); command !== undefined; command = managed.queue.shift()) {
      const answer = managed.mac.answer(command);
      if (answer === null) continue;
      const { udid } = managed.mac.identity;
      const event = reportEvent(udid, answer, managed.profile?.parameters ?? {});
      await this.#send(event);
      if (managed.mac.misbehaviours.has('duplicate_answers')) await this.#send(event);
      // A busy Mac leaves the command in the queue until the next push.
      if (answer.status === 'NotNow') {
        managed.queue.unshift(command);
        return;
      }
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { pathname } = new URL(request.url ?? '/', 'http://simulation');
      const body = await readBody(request, MAX_BODY_BYTES);
      const [status, answer] = await this.#route(request, pathname, body);
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    } catch (error) {
      const message = error instanceof Error ? error.message : 'failed';
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: message }));
    }
  }

  async #route(request: IncomingMessage, path: string, body: Buffer): Promise<readonly [number, unknown]> {
    if (path === '/version') return [200, { version: 'simulated' }];
    // Needs no API key: anybody may install a profile on their own Mac.
    if (path === '/simulation/v1/install' && request.method === 'POST') {
      const mac = await this.enrolBySerial(await profileXmlOf(JSON.parse(body.toString('utf8')) as Record<string, unknown>));
      return [200, describe(this.#managed(mac.identity.udid))];
    }
    if (!this.#isAuthorized(request)) return [401, { error: 'unauthorized' }];
    const nanoMdmRoute = /^\/v1\/(enqueue|push)\/([^/]+)$/.exec(path);
    if (nanoMdmRoute !== null) {
      const [, action, ids = ''] = nanoMdmRoute;
      if (request.method !== 'PUT' && !(action === 'push' && request.method === 'GET')) return [405, { error: 'method' }];
      const udids = decodeURIComponent(ids).split(',');
      return action === 'enqueue' ? this.#enqueue(udids, body) : this.#pushAll(udids);
    }
    return this.#control(request.method ?? 'GET', path, body);
  }

  #isAuthorized(request: IncomingMessage): boolean {
    const expected = Buffer.from(`Basic ${Buffer.from(`nanomdm:${this.#options.apiKey}`).toString('base64')}`);
    const received = Buffer.from(request.headers.authorization ?? '');
    return received.length === expected.length && timingSafeEqual(received, expected);
  }

  #enqueue(udids: readonly string[], body: Buffer): readonly [number, unknown] {
    const command = readCommand(body.toString('utf8'));
    const status: Record<string, unknown> = {};
    for (const udid of udids) {
      const managed = this.#macs.get(udid);
      if (managed?.profile == null) {
        status[udid] = { command_error: 'no such enrolment' };
        continue;
      }
      managed.queue.push(command);
      this.#push(managed);
      status[udid] = { push_result: randomUUID().toUpperCase() };
    }
    const failed = Object.values(status).some((one) => 'command_error' in (one as object));
    return [failed ? 207 : 200, { status, command_uuid: command.uuid, request_type: command.requestType }];
  }

  #pushAll(udids: readonly string[]): readonly [number, unknown] {
    const status: Record<string, unknown> = {};
    for (const udid of udids) {
      const managed = this.#macs.get(udid);
      if (managed?.profile == null) status[udid] = { push_error: 'no such enrolment' };
      else {
        this.#push(managed);
        status[udid] = { push_result: randomUUID().toUpperCase() };
      }
    }
    return [200, { status }];
  }

  /** Routes under `/simulation/v1/macs`: list, create, `{udid}/enrol`, `{udid}/unenrol`, and `PATCH {udid}` to change a Mac. */
  async #control(method: string, path: string, body: Buffer): Promise<readonly [number, unknown]> {
    const macsRoute = /^\/simulation\/v1\/macs(?:\/([^/]+)(?:\/(enrol|unenrol))?)?$/.exec(path);
    const input = body.length === 0 ? {} : (JSON.parse(body.toString('utf8')) as Record<string, unknown>);
    if (macsRoute === null) return [404, { error: 'not found' }];
    const [, udid, action] = macsRoute;
    if (udid === undefined) {
      if (method === 'GET') return [200, { macs: [...this.#macs.values()].map((managed) => describe(managed)) }];
      if (method !== 'POST') return [405, { error: 'method' }];
      const mac = this.addMac(input.identity as Partial<MacIdentity>, input as { protections?: MacProtections });
      return [201, describe(this.#managed(mac.identity.udid))];
    }
    if (!this.#macs.has(udid)) return [404, { error: 'not found' }];
    const managed = this.#managed(udid);
    if (action === 'enrol') await this.enrol(udid, await profileXmlOf(input));
    else if (action === 'unenrol') await this.unenrol(udid);
    else if (method === 'PATCH') {
      managed.mac.protections = { ...managed.mac.protections, ...(input.protections as Partial<MacProtections>) };
      if (input.misbehaviours !== undefined) managed.mac.misbehaviours = new Set(input.misbehaviours as Misbehaviour[]);
      this.#save();
    }
    return [200, describe(managed)];
  }
}

function describe({ mac, profile, queue }: ManagedMac) {
  return {
    identity: mac.identity,
    protections: mac.protections,
    misbehaviours: [...mac.misbehaviours],
    enrolled: profile !== null,
    queued: queue.length,
  };
}

/** XML of the profile that the body contains, or that its `profile_url` serves. */
async function profileXmlOf(input: Record<string, unknown>): Promise<string> {
  if (typeof input.profile === 'string') return input.profile;
  const response = await fetch(String(input.profile_url), { signal: AbortSignal.timeout(10_000) });
  if (!response.ok) throw new TypeError(`the profile's address answered with status ${response.status}`);
  return response.text();
}

function readCommand(text: string): ReceivedCommand {
  const root = parse(text) as { [key: string]: PlistValue };
  const command = root.Command as { [key: string]: PlistValue } | undefined;
  const uuid = root.CommandUUID;
  const requestType = command?.RequestType;
  if (typeof uuid !== 'string' || typeof requestType !== 'string') throw new TypeError('no command');
  const nonce = command?.DeviceAttestationNonce;
  return { uuid, requestType, nonce: nonce instanceof Uint8Array ? nonce : null };
}

function newIdentity(): MacIdentity {
  const unique = randomUUID().replaceAll('-', '').toUpperCase();
  return {
    serialNumber: `SIM${unique.slice(0, 7)}`,
    udid: randomUUID().toUpperCase(),
    provisioningUdid: `00006041-${unique.slice(8, 24)}`,
    softwareUpdateDeviceId: 'J575cAP',
    hardwareModel: 'Mac16,9',
    osVersion: '26.1',
  };
}
