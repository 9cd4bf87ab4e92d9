/** Validation rules for react-hook-form. The sign-in service validates again. */

/** Catches typing errors only; the mail proves the address. */
export const EMAIL_PATTERN = { value: /^\S+@\S+\.\S+$/, message: 'Enter a valid email address.' };

/** `min`: characters, from the settings of the coordinator. */
export function newPasswordRules(min: number) {
  return {
    required: 'Choose a password.',
    minLength: { value: min, message: `A password has at least ${min} characters.` },
    maxLength: { value: 128, message: 'A password has at most 128 characters.' },
  };
}
