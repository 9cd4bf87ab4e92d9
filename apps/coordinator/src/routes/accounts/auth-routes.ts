/**
 * `AUTH_ROUTES` lists the routes of the sign-in library better-auth that sign-in.ts serves under `/console/auth`.
 *
 * The schemas are only documentation, because better-auth validates the bodies. Flags select the checks and limits that sign-in.ts adds.
 */
import type { FastifySchema } from 'fastify';
import Type from 'typebox';
import type { NoticeKind } from '../../accounts/mailer.js';
import { pathParams } from '../plugins/route-schemas.js';

export interface AuthRoute {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly schema: FastifySchema;
  /** Limits attempts per client and `email` of the body. Attempts that lead to a session or a second step do not count. */
  readonly limitsAttemptsByEmail?: true;
  /** Limits attempts per network of the client. Attempts that lead to a session do not count. */
  readonly limitsAttemptsByNetwork?: true;
  /** Limits attempts per session, so that a stolen session cannot be used to guess the password. */
  readonly limitsAttemptsBySession?: true;
  /** better-auth's answer of a route that sends an e-mail to the `email` of the body, whether or not the address has an account. */
  readonly mailAnswer?: object;
  readonly needsPassword?: true;
  /** Requests wait in the sign-in queue, because hashing is slow. */
  readonly hashesPassword?: true;
  /** sign-in.ts verifies the password, because better-auth does not. */
  readonly confirmsPassword?: true;
  /** Method of better-auth's own route, if different. */
  readonly forwardAs?: 'GET';
  /** Stores a passkey. sign-in.ts removes passkeys beyond the maximum, which concurrent registrations may exceed. */
  readonly addsPasskey?: true;
  /** Kind of the e-mail that informs a signed-in user after a success. */
  readonly notice?: NoticeKind;
}

/** Maximum characters of body members. E-mail addresses: RFC 5321 section 4.5.3.1. */
export const MAX_LENGTHS = { email: 254, name: 100, image: 500 } as const;

const text = Type.String();
const email = Type.String({ maxLength: MAX_LENGTHS.email });
const name = Type.String({ maxLength: MAX_LENGTHS.name });
const image = Type.Optional(Type.String({ maxLength: MAX_LENGTHS.image, description: 'Address of a picture.' }));
const consolePath = Type.Optional(Type.String({ description: 'Path of the console that the link in the e-mail leads to.' }));
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
  trustDevice: Type.Optional(Type.Boolean({ description: 'Do not ask this browser for a second step for 30 days.' })),
});
const signedIn = { 200: Type.Object({ user: User }) };
const backupCodes = Type.Array(text, { description: 'Single-use codes. They are not shown again.' });
const webAuthn = Type.Object({}, { additionalProperties: true, description: 'JSON of Web Authentication Level 3.' });

const SECOND_FACTOR_ROUTES: readonly AuthRoute[] = [
  {
    method: 'POST',
    path: '/two-factor/enable',
    schema: {
      body: password,
      response: { 200: Type.Object({ method: Type.Literal('totp'), totpURI: text, backupCodes }) },
    },
    needsPassword: true,
    hashesPassword: true,
    limitsAttemptsBySession: true,
  },
  {
    method: 'POST',
    path: '/two-factor/verify-totp',
    schema: { body: secondStep, response: signedIn },
    limitsAttemptsByNetwork: true,
    notice: 'two_factor_enabled',
  },
  {
    method: 'POST',
    path: '/two-factor/verify-backup-code',
    schema: { body: secondStep, response: signedIn },
    limitsAttemptsByNetwork: true,
  },
  {
    method: 'POST',
    path: '/two-factor/generate-backup-codes',
    schema: { body: password, response: { 200: Type.Object({ status: Type.Literal(true), backupCodes }) } },
    needsPassword: true,
    hashesPassword: true,
    limitsAttemptsBySession: true,
  },
  {
    method: 'POST',
    path: '/two-factor/disable',
    schema: { body: password, response: done },
    needsPassword: true,
    hashesPassword: true,
    limitsAttemptsBySession: true,
    notice: 'two_factor_disabled',
  },
  {
    method: 'POST',
    path: '/passkey/generate-register-options',
    schema: { body: password, response: { 200: webAuthn } },
    needsPassword: true,
    hashesPassword: true,
    limitsAttemptsBySession: true,
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
    hashesPassword: true,
    limitsAttemptsBySession: true,
    confirmsPassword: true,
    notice: 'passkey_removed',
  },
  { method: 'GET', path: '/passkey/generate-authenticate-options', schema: { response: { 200: webAuthn } } },
  {
    method: 'POST',
    path: '/passkey/verify-authentication',
    schema: { body: Type.Object({ response: webAuthn }), response: signedIn },
    limitsAttemptsByNetwork: true,
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
    limitsAttemptsByEmail: true,
    hashesPassword: true,
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
            { description: 'The password is correct, and a second step must follow.' },
          ),
        ]),
      },
    },
    limitsAttemptsByEmail: true,
    hashesPassword: true,
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
    hashesPassword: true,
    limitsAttemptsBySession: true,
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
    hashesPassword: true,
    limitsAttemptsBySession: true,
  },
  {
    method: 'POST',
    path: '/request-password-reset',
    schema: { body: Type.Object({ email, redirectTo: consolePath }), response: mailSent },
    mailAnswer: { status: true, message: 'If this email exists in our system, check your email for the reset link' },
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
    hashesPassword: true,
  },
  {
    method: 'POST',
    path: '/send-verification-email',
    schema: { body: Type.Object({ email, callbackURL: consolePath }), response: mailSent },
    mailAnswer: { status: true },
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
