/** Posts events to a coordinator as NanoMDM does: JSON, signed with an HMAC over the exact bytes. */
import { createHmac, randomUUID } from 'node:crypto';
import type { MacAnswer } from './fake-mac.js';

export interface WebhookTarget {
  readonly url: string;
  readonly secret: string;
}

/** Lets tests forge events. */
export interface SendOptions {
  /** `wrong` signs with another secret, `none` omits the signature. Default: `right`. */
  readonly signature?: 'right' | 'wrong' | 'none';
  /** Changes the event before signing. */
  readonly change?: (event: Record<string, unknown>) => Record<string, unknown>;
}

export interface SentEvent {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
  readonly answer: string;
}

const TIMEOUT_MS = 10_000;
const JSON_TYPE = { 'content-type': 'application/json' } as const;

/** Event about a Mac's answer to a command. */
export function reportEvent(udid: string, answer: MacAnswer, urlParameters: Readonly<Record<string, string>>): Record<string, unknown> {
  return {
    topic: 'mdm.Connect',
    acknowledge_event: {
      udid,
      status: answer.status,
      command_uuid: answer.commandUuid,
      raw_payload: Buffer.from(answer.rawPlist).toString('base64'),
      url_params: urlParameters,
      ids: { id: udid, type: 'Device' },
    },
  };
}

/** Event about a check-in message of a Mac. */
export function checkInEvent(
  udid: string,
  messageType: string,
  rawPlist: Uint8Array,
  urlParameters: Readonly<Record<string, string>>,
): Record<string, unknown> {
  return {
    topic: `mdm.${messageType}`,
    checkin_event: {
      udid,
      raw_payload: Buffer.from(rawPlist).toString('base64'),
      url_params: urlParameters,
      ids: { id: udid, type: 'Device' },
    },
  };
}

/** Signs and posts an event. Resolves with a response of any status; rejects when none arrives in 10 seconds. */
export async function sendEvent(
  target: WebhookTarget,
  event: Record<string, unknown>,
  now: number,
  options: SendOptions = {},
): Promise<SentEvent> {
  const whole = { ...event, event_id: randomUUID(), created_at: new Date(now).toISOString() };
  const body = JSON.stringify((options.change ?? ((same) => same))(whole));
  const secret = options.signature === 'wrong' ? `not ${target.secret}` : target.secret;
  return sendRaw(target, body, options.signature === 'none' ? JSON_TYPE : signedHeaders(secret, body));
}

/** Headers with the HMAC over the exact bytes. */
export function signedHeaders(secret: string, body: string): Readonly<Record<string, string>> {
  return { ...JSON_TYPE, 'x-hmac-signature': createHmac('sha256', secret).update(body).digest('base64') };
}

/** Posts exactly this body with these headers, so that tests can replay an event. */
export async function sendRaw(target: WebhookTarget, body: string, headers: Readonly<Record<string, string>>): Promise<SentEvent> {
  const response = await fetch(target.url, { method: 'POST', body, headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  return { body, headers, status: response.status, answer: await response.text() };
}
