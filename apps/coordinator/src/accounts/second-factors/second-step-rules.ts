/**
 * `secondStepRules` is a plugin of better-auth, the sign-in library, with three rules for users with a second factor.
 *
 * 1. A code of an authenticator app (TOTP) works once.
 * 2. Attempts are counted before the code is checked, so that concurrent guesses cannot exceed the limit.
 * 3. The link that verifies an e-mail address does not sign in a user with a second factor.
 */
import { createOTP } from '@better-auth/utils/otp';
import type { BetterAuthPlugin } from 'better-auth';
import { APIError, createAuthMiddleware, getSessionFromCtx } from 'better-auth/api';
import { deleteSessionCookie } from 'better-auth/cookies';
import { symmetricDecrypt } from 'better-auth/crypto';

export interface SecondStepOptions {
  /** Counts attempts per account. Without a counter, only better-auth's own limits apply. */
  readonly secondSteps?: SecondStepCounter | undefined;
}

/** Methods of `AttemptCounter` that are used here. `count` returns the seconds until a retry, or null within the limit. */
interface SecondStepCounter {
  count(userId: string): number | null | Promise<number | null>;
  refund(userId: string): void | Promise<void>;
}

const VERIFY_PATHS: ReadonlySet<string> = new Set(['/two-factor/verify-totp', '/two-factor/verify-backup-code']);
/** Duration of a TOTP time step (RFC 6238 section 4.1). */
const STEP_MS = 30_000;
/** Time steps whose codes better-auth accepts, relative to the current step. */
const ACCEPTED_STEP_OFFSETS = [-1, 0, 1];

/** Context of a better-auth hook, for which the library exports no name. */
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
      // Set by passkeys.ts.
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
            // The browser was already signed in with this session, so the link has not created one.
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

/**
 * Records the time step of a correct code. Later codes must be of a later step (RFC 6238 section 5.2).
 *
 * @throws {APIError} The code or a later code was used before.
 */
async function claimCode(ctx: HookContext, userId: string): Promise<void> {
  const { code } = ctx.body as { readonly code?: unknown };
  if (typeof code !== 'string') return;
  const { adapter, secretConfig } = ctx.context;
  const ofUser = { field: 'userId', value: userId };
  const stored = await adapter.findOne<StoredTwoFactor>({ model: 'twoFactor', where: [ofUser] });
  if (stored === null) return;
  const otp = createOTP(await symmetricDecrypt({ key: secretConfig, data: stored.secret }));
  const current = Math.floor(Date.now() / STEP_MS);
  const steps = ACCEPTED_STEP_OFFSETS.map((offset) => current + offset);
  const codes = await Promise.all(steps.map((step) => otp.hotp(step)));
  const step = steps.find((_, index) => codes[index] === code);
  // The code is wrong. better-auth refuses the code and counts the failure.
  if (step === undefined) return;
  const where = [ofUser, { field: 'lastUsedStep', operator: 'lt' as const, value: step }];
  const claimed = await adapter.incrementOne({ model: 'twoFactor', where, increment: {}, set: { lastUsedStep: step } });
  if (claimed === null) throw new APIError('UNAUTHORIZED', { message: 'This code was already used. Wait for the next one.' });
}
