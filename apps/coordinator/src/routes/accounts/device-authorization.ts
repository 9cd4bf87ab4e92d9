/**
 * OAuth routes by which an agent links its provider to the owner's account: device authorization grant (RFC 8628), revocation (RFC 7009),
 * metadata (RFC 8414).
 */
import { OAUTH_ERRORS, type OAuthErrorCode } from '@inference/formats';
import { cleanLabel } from '@inference/protocol';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, onRequestHookHandler } from 'fastify';
import Type, { type Static, type TProperties } from 'typebox';
import type { ProviderLinks } from '../../accounts/provider-links.js';
import { DEVICE_CODE_LIFE_MS, type DeviceCodeRepository, type PollOutcome } from '../../database/accounts/device-code-repository.js';
import { consoleOrigin } from '../plugins/console-origin.js';
import { bytesOf } from '../plugins/request-bodies.js';

/** The agent is the only OAuth client. */
const CLIENT_ID = 'inference-provider';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** Console page where the owner enters a code. */
const LINK_PATH = '/link';
const MAX_LABEL = 64;

interface OAuthRoutes {
  readonly codes: DeviceCodeRepository;
  readonly links: ProviderLinks;
  readonly publicOrigin: string | null;
}

const text = Type.String();
const texts = Type.Array(text);
const ErrorSchema = Type.Object({ error: Type.Enum([...OAUTH_ERRORS]), error_description: text });
const MetadataSchema = Type.Object({
  issuer: text,
  device_authorization_endpoint: text,
  token_endpoint: text,
  revocation_endpoint: text,
  grant_types_supported: texts,
  response_types_supported: texts,
  token_endpoint_auth_methods_supported: texts,
  revocation_endpoint_auth_methods_supported: texts,
});
const AUTHORIZATION = formSchema(
  { machine_name: Type.Optional(text), chip_name: Type.Optional(text) },
  {
    device_code: text,
    user_code: text,
    verification_uri: text,
    verification_uri_complete: text,
    expires_in: Type.Number({ description: 'Seconds.' }),
    interval: Type.Number({ description: 'Seconds between two polls.' }),
  },
);
const TOKEN = formSchema(
  { grant_type: Type.Literal(DEVICE_GRANT), device_code: text },
  { access_token: text, token_type: Type.Literal('Bearer') },
);
const REVOCATION = formSchema({ token: text }, {});

function formSchema(parameters: TProperties, answer: TProperties): FastifySchema {
  return {
    consumes: ['application/x-www-form-urlencoded'],
    body: Type.Object({ client_id: Type.Literal(CLIENT_ID), ...parameters }),
    response: { 200: Type.Object(answer), 400: ErrorSchema },
  };
}

type Handle = (form: ReadonlyMap<string, string>, request: FastifyRequest) => Promise<object>;

export function addOAuth(server: FastifyInstance, { codes, links, publicOrigin }: OAuthRoutes): void {
  const { publicRoutes, authRoutes } = server.rateLimits;
  const originOf = (request: FastifyRequest): string => {
    const origin = consoleOrigin(request, publicOrigin);
    if (origin === null) throw new OAuthError('invalid_request', 'The console is not served under this name. Set PUBLIC_URL.');
    return origin;
  };
  const add = (path: string, schema: FastifySchema, limit: onRequestHookHandler, handle: Handle): void => {
    server.post(path, { schema, onRequest: limit, bodyLimit: MAX_FORM_BYTES }, (request, reply) =>
      sendAnswer(reply, async () => handle(readForm(request), request)),
    );
  };

  const metadataSchema = { response: { 200: MetadataSchema, 400: ErrorSchema } };
  server.get('/.well-known/oauth-authorization-server', { schema: metadataSchema, onRequest: publicRoutes }, (request, reply) =>
    sendAnswer(reply, async () => metadata(originOf(request))),
  );

  add('/oauth/device_authorization', AUTHORIZATION, authRoutes, async (form, request) => {
    checkClient(form);
    const origin = originOf(request);
    const { deviceCode, userCode } = await codes.create({
      machineName: cleanLabel(form.get('machine_name') ?? '', MAX_LABEL, 'unnamed machine'),
      chipName: cleanLabel(form.get('chip_name') ?? '', MAX_LABEL, '') || null,
      address: request.ip,
    });
    return {
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: `${origin}${LINK_PATH}`,
      verification_uri_complete: `${origin}${LINK_PATH}?code=${userCode}`,
      expires_in: DEVICE_CODE_LIFE_MS / 1000,
      interval: codes.intervalMs / 1000,
    };
  });

  // Not `authRoutes`: an agent polls often, and polls are limited per device code (`slow_down`).
  add('/oauth/token', TOKEN, publicRoutes, async (form) => {
    if (requiredParameter(form, 'grant_type') !== DEVICE_GRANT) {
      throw new OAuthError('unsupported_grant_type', `The only grant type is ${DEVICE_GRANT}.`);
    }
    checkClient(form);
    const outcome = await codes.poll(requiredParameter(form, 'device_code'));
    if (outcome.kind !== 'granted') throw pollError(outcome.kind);
    return { access_token: outcome.token, token_type: 'Bearer' };
  });

  add('/oauth/revoke', REVOCATION, authRoutes, async (form) => {
    checkClient(form);
    await links.revoke(requiredParameter(form, 'token'));
    return {};
  });
}

async function sendAnswer(reply: FastifyReply, make: () => Promise<object>): Promise<FastifyReply> {
  reply.header('cache-control', 'no-store').header('pragma', 'no-cache');
  try {
    return reply.send(await make());
  } catch (error) {
    if (error instanceof OAuthError) return sendOAuthError(reply, error);
    throw error;
  }
}

function checkClient(form: ReadonlyMap<string, string>): void {
  if (requiredParameter(form, 'client_id') !== CLIENT_ID) throw new OAuthError('invalid_client', 'There is no such client.');
}

function pollError(kind: Exclude<PollOutcome['kind'], 'granted'>): OAuthError {
  switch (kind) {
    case 'pending':
      return new OAuthError('authorization_pending', 'The owner has not decided yet.');
    case 'slow_down':
      return new OAuthError('slow_down', 'Polled too often: add five seconds to the interval from now on.');
    case 'denied':
      return new OAuthError('access_denied', 'The owner refused.');
    case 'expired':
      return new OAuthError('expired_token', 'The code has expired. Ask for a new one.');
    case 'unknown':
      return new OAuthError('invalid_grant', 'There is no such code, or it was used before.');
    default:
      return kind satisfies never;
  }
}

function metadata(origin: string): Static<typeof MetadataSchema> {
  return {
    issuer: origin,
    device_authorization_endpoint: `${origin}/oauth/device_authorization`,
    token_endpoint: `${origin}/oauth/token`,
    revocation_endpoint: `${origin}/oauth/revoke`,
    grant_types_supported: [DEVICE_GRANT],
    response_types_supported: [],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
  };
}

const MAX_FORM_BYTES = 8 * 1024;

class OAuthError extends Error {
  constructor(
    readonly code: OAuthErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'OAuthError';
  }
}

/** Parameters of a form body, by name. Throws {@link OAuthError}. */
function readForm(request: FastifyRequest): ReadonlyMap<string, string> {
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    throw new OAuthError('invalid_request', 'The body must be application/x-www-form-urlencoded.');
  }
  const form = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(textOf(bytesOf(request)))) {
    if (form.has(name)) throw new OAuthError('invalid_request', 'A parameter was sent twice.');
    // Parameters without a value must be treated as omitted (RFC 6749 section 3.1).
    if (value !== '') form.set(name, value);
  }
  return form;
}

function requiredParameter(form: ReadonlyMap<string, string>, name: string): string {
  const value = form.get(name);
  if (value === undefined) throw new OAuthError('invalid_request', `The parameter ${name} is missing.`);
  return value;
}

function sendOAuthError(reply: FastifyReply, error: OAuthError): FastifyReply {
  return reply.code(400).send({ error: error.code, error_description: error.message });
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new OAuthError('invalid_request', 'The body is not UTF-8.');
  }
}
