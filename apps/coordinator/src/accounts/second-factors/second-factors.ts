/** Second factors of sign-in: codes of an authenticator app with backup codes, and passkeys. Plugins of better-auth. */
import { type TwoFactorOptions, twoFactor } from 'better-auth/plugins/two-factor';
import { passkeys } from './passkeys.js';
import { type SecondStepOptions, secondStepRules } from './second-step-rules.js';

export interface SecondFactorOptions extends SecondStepOptions {
  /** Origin of the console; null: the origin of each request, checked by the routes. */
  readonly publicUrl: string | null;
}

const TWO_FACTOR = {
  issuer: 'Inference',
  // Secrets and codes are encrypted with the session secret.
  backupCodeOptions: { storeBackupCodes: 'encrypted' },
  schema: { twoFactor: { modelName: 'authTwoFactors' } },
} satisfies TwoFactorOptions;

export function secondFactors(options: SecondFactorOptions) {
  return [twoFactor(TWO_FACTOR), secondStepRules(options), passkeys(options.publicUrl)] as const;
}
