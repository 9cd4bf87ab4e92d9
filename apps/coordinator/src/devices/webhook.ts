/**
 * `openWebhook` validates webhook requests of a management server (NanoMDM or MicroMDM): signature, age, schema and property list.
 *
 * The envelope and the device's own message must name the same device.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { fromBase64OrNull } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { jsonReader } from './json-reader.js';
import { type DeviceReport, type ReportRefusal, readCheckIn, readReport } from './reports.js';

/** Maximum size of a webhook body, in bytes: a property list of maximum size in base64, plus the envelope. */
export const MAX_WEBHOOK_BYTES = 512 * 1024;
/** Maximum age of an event in milliseconds. Also the maximum by which its time may be in the future. */
export const MAX_EVENT_AGE_MS = 10 * 60_000;

export type WebhookRefusal =
  | 'webhook_unsigned'
  | 'webhook_bad_signature'
  | 'webhook_malformed'
  | 'webhook_stale'
  | 'webhook_udid_mismatch'
  | 'webhook_command_mismatch'
  | ReportRefusal;

/** Facts of an event that do not depend on its kind. */
interface Origin {
  /** Id of the device at the management server, used to send commands. */
  readonly deviceId: string;
  /** Query parameters of the management URL in the device's profile. */
  readonly parameters: Readonly<Record<string, string>>;
  /** SHA-256 of the body, for the detection of replays. */
  readonly digest: string;
  readonly createdAt: number;
}

type CheckInTopic = 'Authenticate' | 'TokenUpdate' | 'CheckOut';

export type WebhookEvent =
  | (Origin & {
      readonly kind: 'report';
      readonly report: DeviceReport;
      readonly rawPlist: Uint8Array;
    })
  | (Origin & { readonly kind: 'check_in'; readonly topic: CheckInTopic })
  /** Any other topic. Its age is not checked. */
  | { readonly kind: 'other'; readonly topic: string };

type ReadWebhook = { readonly ok: true; readonly event: WebhookEvent } | { readonly ok: false; readonly code: WebhookRefusal };

const Text = Type.String({ minLength: 1, maxLength: 256 });
const Common = {
  /** NanoMDM's id of the enrolment. MicroMDM sends none. */
  ids: Type.Optional(Type.Object({ id: Text, type: Text })),
  udid: Type.Optional(Text),
  enrollment_id: Type.Optional(Text),
  raw_payload: Type.String({ minLength: 1 }),
  url_params: Type.Optional(
    Type.Union([Type.Null(), Type.Record(Type.String({ maxLength: 128 }), Type.String({ maxLength: 1024 }), { maxProperties: 16 })]),
  ),
};
export const EventSchema = Type.Object({
  topic: Type.String({ maxLength: 64 }),
  created_at: Type.String({ maxLength: 64 }),
  event_id: Type.Optional(Type.String({ maxLength: 256 })),
  acknowledge_event: Type.Optional(Type.Object({ ...Common, status: Text, command_uuid: Type.Optional(Type.String({ maxLength: 256 })) })),
  checkin_event: Type.Optional(Type.Object(Common)),
});
type Event = Static<typeof EventSchema>;
type Part = NonNullable<Event['checkin_event']>;
const readEvent = jsonReader(EventSchema);

/** Whether `signature` (header `X-Hmac-Signature`) is the base64 HMAC-SHA256 of the body. Constant-time comparison. */
export function isSignedBy(secret: string, body: Uint8Array, signature: string): boolean {
  const expected = createHmac('sha256', secret).update(body).digest();
  const received = fromBase64OrNull(signature);
  return received?.length === expected.length && timingSafeEqual(received, expected);
}

/** Checks signature and age, and parses the event. `digest`: SHA-256 of the body in hexadecimal. Never throws. */
export function openWebhook(input: {
  readonly body: Uint8Array;
  readonly signature: string | undefined;
  readonly secret: string;
  readonly now: number;
  readonly digest: string;
}): ReadWebhook {
  if (input.signature === undefined || input.signature === '') return { ok: false, code: 'webhook_unsigned' };
  if (!isSignedBy(input.secret, input.body, input.signature)) return { ok: false, code: 'webhook_bad_signature' };
  const read = readWebhook(input.body, input.digest);
  if (!read.ok || read.event.kind === 'other') return read;
  return Math.abs(input.now - read.event.createdAt) <= MAX_EVENT_AGE_MS ? read : { ok: false, code: 'webhook_stale' };
}

/** Parses an event whose signature was checked. */
export function readWebhook(body: Uint8Array, digest: string): ReadWebhook {
  const event = readEvent(body);
  if (event === null) return { ok: false, code: 'webhook_malformed' };
  const createdAt = Date.parse(event.created_at);
  if (Number.isNaN(createdAt)) return { ok: false, code: 'webhook_malformed' };
  const topic = event.topic.replace(/^mdm\./, '');
  if (event.acknowledge_event !== undefined && topic === 'Connect') {
    return readReportEvent(event.acknowledge_event, { digest, createdAt });
  }
  if (event.checkin_event !== undefined && isCheckInTopic(topic))
    return readCheckInEvent(event.checkin_event, topic, { digest, createdAt });
  return event.acknowledge_event === undefined && event.checkin_event === undefined
    ? { ok: false, code: 'webhook_malformed' }
    : { ok: true, event: { kind: 'other', topic } };
}

function readReportEvent(part: NonNullable<Event['acknowledge_event']>, facts: { digest: string; createdAt: number }): ReadWebhook {
  const raw = fromBase64OrNull(part.raw_payload);
  if (raw === null) return { ok: false, code: 'webhook_malformed' };
  const read = readReport(raw);
  if (!read.ok) return read;
  const report = read.value;
  if (!isSameDevice(part, report.udid)) return { ok: false, code: 'webhook_udid_mismatch' };
  const commandUuid = part.command_uuid === '' ? undefined : part.command_uuid;
  if ((commandUuid ?? null) !== report.commandUuid || part.status !== report.status) return { ok: false, code: 'webhook_command_mismatch' };
  const deviceId = deviceIdOf(part);
  if (deviceId === null) return { ok: false, code: 'webhook_malformed' };
  return { ok: true, event: { kind: 'report', deviceId, parameters: part.url_params ?? {}, report, rawPlist: raw, ...facts } };
}

function readCheckInEvent(part: Part, topic: CheckInTopic, facts: { digest: string; createdAt: number }): ReadWebhook {
  const raw = fromBase64OrNull(part.raw_payload);
  if (raw === null) return { ok: false, code: 'webhook_malformed' };
  const read = readCheckIn(raw);
  if (!read.ok) return read;
  if (read.value.messageType !== topic || !isSameDevice(part, read.value.udid)) return { ok: false, code: 'webhook_udid_mismatch' };
  const deviceId = deviceIdOf(part);
  if (deviceId === null) return { ok: false, code: 'webhook_malformed' };
  return { ok: true, event: { kind: 'check_in', topic, deviceId, parameters: part.url_params ?? {}, ...facts } };
}

/** Whether device and server name the same device. User enrolments have no UDID and are rejected. */
function isSameDevice(part: Part, innerUdid: string | null): boolean {
  return innerUdid !== null && part.udid !== undefined && part.udid === innerUdid;
}

function deviceIdOf(part: Part): string | null {
  if (part.ids !== undefined) return part.ids.type === 'Device' ? part.ids.id : null;
  return part.udid ?? null;
}

function isCheckInTopic(topic: string): topic is CheckInTopic {
  return topic === 'Authenticate' || topic === 'TokenUpdate' || topic === 'CheckOut';
}
