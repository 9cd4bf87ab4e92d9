/** Attributes and validation rules of the field for codes from an authenticator app. */
export const CODE_FIELD = { inputMode: 'numeric', autoComplete: 'one-time-code', maxLength: 8 } as const;
export const CODE_RULES = {
  required: 'Enter the code from your authenticator app.',
  pattern: { value: /^\s*\d{3}\s?\d{3}\s*$/, message: 'A code has 6 digits.' },
};
