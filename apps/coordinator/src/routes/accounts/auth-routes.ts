/**
 * `AUTH_ROUTES` lists the routes of the authentication library better-auth that are served under `/console/auth`. Each has a schema for the
 * documentation, and flags for the checks and limits that sign-in.ts adds. better-auth validates the bodies.
 */
import type { FastifySchema } from 'fastify';
import Type from 'typebox';
import type { NoticeKind } from '../../accounts/mailer.js';
import { pathParams } from '../plugins/route-schemas.js';

export interface AuthRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly schema: FastifySchema;
  /** Limits failed attempts per `email` of the body. */
  readonly limitEmail?: true;
  /** The route sends an e-mail to the `email` of the body, and needs a mailer. Above the limits, no e-mail is sent. */
  readonly needsMail?: true;
  /** The body must contain the password, in addition to the session. */
  readonly needsPassword?: true;
  /** The route hashes a password. Requests wait in the sign-in queue, because hashing is slow. */
  readonly hashes?: true;
  /** Limits failed attempts per network of the client. */
  readonly limitNetwork?: true;
  /** Limits attempts per session, so that a stolen session cannot be used to guess the password. */
  readonly checksPassword?: true;
  /** sign-in.ts verifies the password, because better-auth does not. */
  readonly confirmsPassword?: true;
  /** Method of better-auth's own route, if different. */
  readonly forwardAs?: 'GET';
  /** Stores a passkey. sign-in.ts removes passkeys beyond the maximum, which concurrent registrations may exceed. */
  readonly addsPasskey?: true;
  /** Kind of the e-mail that informs the user after a success. */
  readonly notice?: NoticeKind;
}

/** Maximum lengths of stored texts. E-mail addresses: RFC 5321 section 4.5.3.1. */
export const MAX_LENGTHS = { email: 254, name: 100, image: 500 } as const;

const text = Type.String();
const email = Type.String({ maxLength: MAX_LENGTHS.email });
const name = Type.String({ maxLength: MAX_LENGTHS.name });
const image = Type.Optional(Type.String({ maxLength: MAX_LENGTHS.image, description: 'Address of a picture.' }));
const consolePath = Type.Optional(Type.String({ description: 'Path of the console that the link in the mail leads to.' }));
const rememberMe = Type.Optional(Type.Boolean({ description: 'false: the session ends with the browser. Default true.' }));
const User = Type.Object({
  id: text,
  name: text,
  email: text,
  emailVerified: Type.Boolean(),
  image: Type.Union([text, Type.Null()]),
  twoFactorEnabled: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
  createdAt: text,
  updatedAt: text,
});
const done = { 200: Type.Object({ status: Type.Literal(true) }) };
const mailSent = { 200: Type.Object({ status: Type.Literal(true), message: Type.Optional(text) }) };
const redirected = { 302: { type: 'null', description: 'Redirects to a page of the console.' } };

const password = Type.Object({ password: text });
const secondStep = Type.Object({
  code: text,
  trustDevice: Type.Optional(Type.Boolean({ description: 'Ask this browser for no second step for 30 days.' })),
});
const signedIn = { 200: Type.Object({ user: User }) };
const backupCodes = Type.Array(text, { description: 'Single-use codes, shown only here.' });
const webAuthn = Type.Object({}, { additionalProperties: true, description: 'JSON of Web Authentication Level 3.' });

/** Two-factor authentication and passkeys. */
const SECOND_FACTOR_ROUTES: readonly AuthRoute[] = [
  {
    method: 'POST',
    path: '/two-factor/enable',
    schema: {
      body: password,
      response: { 200: Type.Object({ method: Type.Literal('totp'), totpURI: text, backupCodes }) },
    },
    needsPassword: true,
    hashes: true,
    checksPassword: true,
  },
  {
    method: 'POST',
    path: '/two-factor/verify-totp',
    schema: { body: secondStep, response: signedIn },
    limitNetwork: true,
    notice: 'two_factor_enabled',
  },
  { method: 'POST', path: '/two-factor/verify-backup-code', schema: { body: secondStep, response: signedIn }, limitNetwork: true },
  {
    method: 'POST',
    path: '/two-factor/generate-backup-codes',
    schema: { body: password, response: { 200: Type.Object({ status: Type.Literal(true), backupCodes }) } },
    needsPassword: true,
    hashes: true,
    checksPassword: true,
  },
  {
    method: 'POST',
    path: '/two-factor/disable',
    schema: { body: password, response: done },
    needsPassword: true,
    hashes: true,
    checksPassword: true,
    notice: 'two_factor_disabled',
  },
  {
    method: 'POST',
    path: '/passkey/generate-register-options',
    schema: { body: password, response: { 200: webAuthn } },
    needsPassword: true,
    hashes: true,
    checksPassword: true,
    confirmsPassword: true,
    forwardAs: 'GET',
  },
  {
    method: 'POST',
    path: '/passkey/verify-registration',
    schema: { body: Type.Object({ name, response: webAuthn }), response: { 200: Type.Object({ id: text, name: text }) } },
    notice: 'passkey_added',
    addsPasskey: true,
  },
  {
    method: 'POST',
    path: '/passkey/delete-passkey',
    schema: { body: Type.Object({ id: text, password: text }), response: done },
    needsPassword: true,
    hashes: true,
    checksPassword: true,
    confirmsPassword: true,
    notice: 'passkey_removed',
  },
  { method: 'GET', path: '/passkey/generate-authenticate-options', schema: { response: { 200: webAuthn } } },
  {
    method: 'POST',
    path: '/passkey/verify-authentication',
    schema: { body: Type.Object({ response: webAuthn }), response: signedIn },
    limitNetwork: true,
  },
];

export const AUTH_ROUTES: readonly AuthRoute[] = [
  {
    method: 'POST',
    path: '/sign-up/email',
    schema: {
      body: Type.Object({ name, email, password: text, image, callbackURL: consolePath, rememberMe }),
      response: { 200: Type.Object({ user: User }) },
    },
    limitEmail: true,
    hashes: true,
  },
  {
    method: 'POST',
    path: '/sign-in/email',
    schema: {
      body: Type.Object({ email, password: text, callbackURL: consolePath, rememberMe }),
      response: {
        200: Type.Union([
          Type.Object({ redirect: Type.Boolean(), url: Type.Optional(text), user: User }),
          Type.Object(
            { twoFactorRedirect: Type.Literal(true), twoFactorMethods: Type.Array(text) },
            { description: 'The password is right, and a second step must follow.' },
          ),
        ]),
      },
    },
    limitEmail: true,
    hashes: true,
  },
  { method: 'POST', path: '/sign-out', schema: { response: { 200: Type.Object({ success: Type.Literal(true) }) } } },
  { method: 'POST', path: '/update-user', schema: { body: Type.Object({ name: Type.Optional(name), image }), response: done } },
  {
    method: 'POST',
    path: '/change-password',
    schema: {
      body: Type.Object({ currentPassword: text, newPassword: text, revokeOtherSessions: Type.Optional(Type.Boolean()) }),
      response: { 200: Type.Object({ user: User }) },
    },
    hashes: true,
    checksPassword: true,
    notice: 'password_changed',
  },
  {
    method: 'POST',
    path: '/delete-user',
    schema: {
      body: Type.Object({ password: text }),
      response: { 200: Type.Object({ success: Type.Literal(true), message: text }) },
    },
    needsPassword: true,
    hashes: true,
    checksPassword: true,
  },
  {
    method: 'POST',
    path: '/request-password-reset',
    schema: { body: Type.Object({ email, redirectTo: consolePath }), response: mailSent },
    needsMail: true,
  },
  {
    method: 'GET',
    path: '/reset-password/:token',
    schema: { params: pathParams('token'), querystring: Type.Object({ callbackURL: text }), response: redirected },
  },
  {
    method: 'POST',
    path: '/reset-password',
    schema: { body: Type.Object({ token: text, newPassword: text }), response: done },
    hashes: true,
  },
  {
    method: 'POST',
    path: '/send-verification-email',
    schema: { body: Type.Object({ email, callbackURL: consolePath }), response: mailSent },
    needsMail: true,
  },
  {
    method: 'GET',
    path: '/verify-email',
    schema: {
      querystring: Type.Object({ token: text, callbackURL: consolePath }),
      response: { ...redirected, 200: Type.Object({ status: Type.Literal(true), user: Type.Union([User, Type.Null()]) }) },
    },
  },
  ...SECOND_FACTOR_ROUTES,
];
