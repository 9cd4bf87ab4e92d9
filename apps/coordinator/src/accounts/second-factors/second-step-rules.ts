/**
 * Rules for second factors that better-auth lacks. A TOTP code works once. Each attempt counts before its code is checked.
 * A verification link does not replace the second factor.
 */
import { createOTP } from '@better-auth/utils/otp';
import type { BetterAuthPlugin } from 'better-auth';
import { APIError, createAuthMiddleware, getSessionFromCtx } from 'better-auth/api';
import { deleteSessionCookie } from 'better-auth/cookies';
import { symmetricDecrypt } from 'better-auth/crypto';

export interface SecondStepOptions {
  /** Attempts per account. Absent: the limits of better-auth alone apply. */
  readonly secondSteps?: SecondStepCounter | undefined;
}

/** Part of `AttemptCounter` that this file uses. */
interface SecondStepCounter {
  count(userId: string): number | null | Promise<number | null>;
  refund(userId: string): void | Promise<void>;
}

const VERIFY_PATHS: ReadonlySet<string> = new Set(['/two-factor/verify-totp', '/two-factor/verify-backup-code']);
/** Time step of RFC 6238 section 4.1. */
const STEP_MS = 30_000;
/** better-auth accepts the previous, the current and the next step. */
const ACCEPTED_STEPS = [-1, 0, 1];

/** Context of a hook. better-auth exports no name for this type. */
type HookContext = Parameters<Parameters<typeof createAuthMiddleware>[0]>[0];

interface StoredTwoFactor {
  readonly secret: string;
}

export function secondStepRules({ secondSteps }: SecondStepOptions) {
  return {
    id: 'second-step-rules',
    schema: {
      twoFactor: {
        modelName: 'authTwoFactors',
        fields: { lastUsedStep: { type: 'number', required: false, defaultValue: 0, input: false, returned: false } },
      },
      passkey: { modelName: 'authPasskeys', fields: { lastUsedAt: { type: 'date', required: false, input: false } } },
    },
    hooks: {
      before: [
        {
          matcher: ({ path }) => VERIFY_PATHS.has(path ?? ''),
          handler: createAuthMiddleware(async (ctx) => {
            const userId = await userIdOf(ctx);
            if (userId === null) return;
            const retryAfter = (await secondSteps?.count(userId)) ?? null;
            if (retryAfter !== null) {
              const message = 'Too many wrong codes. Try again later.';
              throw new APIError('TOO_MANY_REQUESTS', { message }, { 'retry-after': String(retryAfter) });
            }
            if (ctx.path === '/two-factor/verify-totp') await claimCode(ctx, userId);
          }),
        },
      ],
      after: [
        {
          matcher: ({ path }) => VERIFY_PATHS.has(path ?? ''),
          handler: createAuthMiddleware(async (ctx) => {
            const userId = ctx.context.newSession?.user.id;
            if (userId !== undefined) await secondSteps?.refund(userId);
          }),
        },
        {
          matcher: ({ path }) => path === '/verify-email',
          handler: createAuthMiddleware(async (ctx) => {
            const signedIn = ctx.context.newSession;
            if (signedIn?.user.twoFactorEnabled !== true) return;
            const { name } = ctx.context.authCookies.sessionToken;
            // The browser already had this session: the link did not create it.
            if ((await ctx.getSignedCookie(name, ctx.context.secret)) === signedIn.session.token) return;
            deleteSessionCookie(ctx, true);
            await ctx.context.internalAdapter.deleteSession(signedIn.session.token);
            ctx.context.setNewSession(null);
          }),
        },
      ],
    },
  } satisfies BetterAuthPlugin;
}

/** User whose code is verified: the signed-in user, or the user of the pending sign-in. */
async function userIdOf(ctx: HookContext): Promise<string | null> {
  const session = await getSessionFromCtx(ctx);
  if (session !== null) return session.user.id;
  const { name } = ctx.context.createAuthCookie('two_factor');
  const pending = await ctx.getSignedCookie(name, ctx.context.secret);
  if (typeof pending !== 'string') return null;
  return (await ctx.context.internalAdapter.findVerificationValue(pending))?.value ?? null;
}

/** Records the time step of a right code. Refuses codes of this step and of earlier ones (RFC 6238 section 5.2). */
async function claimCode(ctx: HookContext, userId: string): Promise<void> {
  const { code } = ctx.body as { readonly code?: unknown };
  if (typeof code !== 'string') return;
  const { adapter, secretConfig } = ctx.context;
  const ofUser = { field: 'userId', value: userId };
  const stored = await adapter.findOne<StoredTwoFactor>({ model: 'twoFactor', where: [ofUser] });
  if (stored === null) return;
  const otp = createOTP(await symmetricDecrypt({ key: secretConfig, data: stored.secret }));
  const current = Math.floor(Date.now() / STEP_MS);
  const steps = ACCEPTED_STEPS.map((offset) => current + offset);
  const codes = await Promise.all(steps.map((step) => otp.hotp(step)));
  const step = steps.find((_, index) => codes[index] === code);
  // The library refuses a wrong code, and counts the failure.
  if (step === undefined) return;
  const where = [ofUser, { field: 'lastUsedStep', operator: 'lt' as const, value: step }];
  const claimed = await adapter.incrementOne({ model: 'twoFactor', where, increment: {}, set: { lastUsedStep: step } });
  if (claimed === null) throw new APIError('UNAUTHORIZED', { message: 'This code was already used. Wait for the next one.' });
}
