/**
 * Routes of device management (MDM): webhooks of the MDM server and of the ACME certificate server, downloads of enrolment profiles, and
 * the device list for operators.
 *
 * An authentic report gets 200 even if its content is ignored or rejected, so that the sender does not retry. Refused webhooks, such as
 * replays, get an error.
 */
import { apiError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import Type, { type Static, type TSchema } from 'typebox';
import { AcmeResultSchema, openAcmeResult } from '../../devices/acme.js';
import { failuresInARow, lastFailure } from '../../devices/command-policy.js';
import { COMMAND_KINDS, type CommandKind } from '../../devices/commands.js';
import type { WatchedDevice } from '../../devices/device-evidence-cache.js';
import type { DeviceManagement } from '../../devices/device-management.js';
import { EventSchema, MAX_WEBHOOK_BYTES, openWebhook } from '../../devices/webhook.js';
import { digestOf, type WebhookOutcome } from '../../devices/webhook-receiver.js';
import { pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

export const WEBHOOK_PATH = '/mdm/v1/webhook';
export const ACME_WEBHOOK_PATH = '/mdm/v1/acme';
export const PROFILE_PATH = '/mdm/v1/enrolment';

const PROFILE_TYPE = 'application/x-apple-aspen-config';
const SIGNATURE_HEADER = 'x-hmac-signature';

const text = Type.String();
const textOrNull = Type.Union([text, Type.Null()]);
const timeOrNull = Type.Union([Type.Integer({ description: 'Milliseconds since 1970.' }), Type.Null()]);
const reportSchema = (body: TSchema) => ({
  headers: Type.Object({ [SIGNATURE_HEADER]: text }),
  body,
  response: {
    200: Type.Object({
      kind: Type.Enum(['taken', 'rejected', 'ignored']),
      what: Type.Optional(text),
      code: Type.Optional(text),
      reason: Type.Optional(text),
    }),
  },
});
const profileSchema = { params: pathParams('token'), response: { 200: { content: { [PROFILE_TYPE]: { schema: text } } } } };

const DeviceSchema = Type.Object({
  provider_id: textOrNull,
  enrolment: textOrNull,
  bound_at: timeOrNull,
  certified_at: timeOrNull,
  commands: Type.Record(
    Type.Enum([...COMMAND_KINDS]),
    Type.Object({
      act: Type.Enum(['send', 'wait']),
      until: Type.Optional(Type.Integer({ description: 'Milliseconds since 1970.' })),
      reason: text,
      last_sent_at: timeOrNull,
      failures_in_a_row: Type.Integer({ minimum: 0 }),
      last_failure: textOrNull,
    }),
  ),
});
const DeviceListSchema = Type.Object({
  devices: Type.Array(DeviceSchema),
  reports: Type.Record(text, Type.Integer({ minimum: 0 }), { description: 'Reports of management servers by outcome.' }),
});

type Managed = NonNullable<DeviceManagement['managed']>;

export function addDevices(server: FastifyInstance, managed: Managed, now: () => number): void {
  const { settings, receiver, enrolments } = managed;
  // Refuses webhooks without a signature before the body is read.
  const requireSignature: onRequestHookHandler = (request, reply, done) => {
    const signature = signatureOf(request);
    if (signature === undefined || signature === '') refuse(reply, 'webhook_unsigned');
    else done();
  };
  const options = { bodyLimit: MAX_WEBHOOK_BYTES, onRequest: [server.rateLimits.publicRoutes, requireSignature] };

  server.post<{ Body: Buffer | undefined }>(WEBHOOK_PATH, { ...options, schema: reportSchema(EventSchema) }, async (request, reply) => {
    const body = request.body ?? Buffer.alloc(0);
    const digest = digestOf(body);
    const opened = openWebhook({ body, digest, signature: signatureOf(request), secret: settings.webhookSecret, now: now() });
    if (!opened.ok) return refuse(reply, opened.code);
    return sendOutcome(reply, await receiver.take(opened.event));
  });

  server.post<{ Body: Buffer | undefined }>(
    ACME_WEBHOOK_PATH,
    { ...options, schema: reportSchema(AcmeResultSchema) },
    async (request, reply) => {
      const body = request.body ?? Buffer.alloc(0);
      const digest = digestOf(body);
      const opened = openAcmeResult({ body, signature: signatureOf(request), secret: settings.acmeHookSecret, now: now() });
      if (!opened.ok) return refuse(reply, opened.code);
      return sendOutcome(reply, await receiver.takeAcme({ ...opened.result, digest }));
    },
  );

  // A download link is valid once. HEAD, which Fastify would route to this handler, must not consume the link.
  const downloadOptions = { schema: profileSchema, exposeHeadRoute: false, onRequest: server.rateLimits.publicRoutes };
  server.get<{ Params: { token: string } }>(`${PROFILE_PATH}/:token`, downloadOptions, async (request, reply) => {
    const profile = await enrolments.download(request.params.token);
    if (profile === null) {
      sendError(reply, apiError('not_found', { message: 'This enrolment address was used before or has expired. Ask for a new one.' }));
      return reply;
    }
    reply.headers({
      'content-type': PROFILE_TYPE,
      'content-disposition': 'attachment; filename="enrolment.mobileconfig"',
      'cache-control': 'no-store',
    });
    return reply.send(Buffer.from(profile));
  });

  const refuse = (reply: FastifyReply, code: string): FastifyReply => {
    receiver.count(`refused:${code}`);
    const isUnauthentic = code === 'webhook_unsigned' || code === 'webhook_bad_signature';
    sendError(reply, apiError(isUnauthentic ? 'webhook_not_authentic' : 'webhook_refused', { message: code }));
    return reply;
  };
}

/** Route for operators: enrolled devices with the state of each kind of command, and numbers of reports by outcome. */
export function addAdminDevices(
  server: FastifyInstance,
  managed: Managed,
  evidence: DeviceManagement['evidence'],
  now: () => number,
): void {
  const schema = { response: { 200: DeviceListSchema } };
  server.get(
    '/admin/v1/devices',
    { onRequest: server.guards.admin, schema },
    async (): Promise<Static<typeof DeviceListSchema>> => ({
      devices: [...evidence.watched()].filter(({ enrolment }) => enrolment !== null).map((device) => deviceState(managed, device, now())),
      reports: Object.fromEntries(managed.receiver.counts),
    }),
  );
}

function deviceState({ commands }: Managed, device: WatchedDevice, now: number): Static<typeof DeviceSchema> {
  const commandState = (kind: CommandKind) => {
    const history = device.commands.filter((command) => command.kind === kind);
    return {
      ...commands.decision(device, kind),
      last_sent_at: history[0]?.sentAt ?? null,
      failures_in_a_row: failuresInARow(history, now),
      last_failure: lastFailure(history, now),
    };
  };
  return {
    provider_id: device.enrolment?.providerId ?? null,
    enrolment: device.enrolment?.state ?? null,
    bound_at: device.enrolment?.boundAt ?? null,
    certified_at: device.certifiedAt,
    commands: { security_info: commandState('security_info'), device_information: commandState('device_information') },
  };
}

function sendOutcome(reply: FastifyReply, outcome: WebhookOutcome): FastifyReply {
  if (outcome.kind !== 'refused') return reply.send(outcome);
  sendError(reply, apiError(outcome.code === 'replayed' ? 'webhook_replayed' : 'webhook_refused', { message: outcome.code }));
  return reply;
}

function signatureOf(request: FastifyRequest): string | undefined {
  const header = request.headers[SIGNATURE_HEADER];
  return typeof header === 'string' ? header : undefined;
}
