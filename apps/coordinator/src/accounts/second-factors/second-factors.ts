/** `secondFactors` returns plugins of better-auth, the sign-in library, for authenticator apps (TOTP), backup codes and passkeys. */
import { type TwoFactorOptions, twoFactor } from 'better-auth/plugins/two-factor';
import { passkeys } from './passkeys.js';
import { type SecondStepOptions, secondStepRules } from './second-step-rules.js';

export interface SecondFactorOptions extends SecondStepOptions {
  /** Origin of the console, from PUBLIC_URL. Null stands for the origin of each request, which the routes check. */
  readonly publicUrl: string | null;
}

const TWO_FACTOR = {
  issuer: 'Inference',
  // better-auth encrypts TOTP secrets by default, with the secret of session cookies.
  backupCodeOptions: { storeBackupCodes: 'encrypted' },
  schema: { twoFactor: { modelName: 'authTwoFactors' } },
} satisfies TwoFactorOptions;

export function secondFactors(options: SecondFactorOptions) {
  return [twoFactor(TWO_FACTOR), secondStepRules(options), passkeys(options.publicUrl)] as const;
}
