/** Creates passkeys in this browser, and signs in with passkeys. The WebAuthn library is loaded on first use. */
import { api } from '../../api/api-client.js';
import { DisplayableError } from '../../ui/feedback/displayable-error.js';

/** Error if the browser returns no passkey. The message is for the user. */
class PasskeyError extends DisplayableError {
  readonly supportId = null;

  get displayText(): string {
    return this.message;
  }
}

type Library = typeof import('@simplewebauthn/browser');
type CreationOptions = Parameters<Library['startRegistration']>[0]['optionsJSON'];
type RequestOptions = Parameters<Library['startAuthentication']>[0]['optionsJSON'];

/** Whether this browser supports passkeys at this address. Browsers refuse passkeys for IP addresses. */
export function canUsePasskeys(): boolean {
  const { hostname } = window.location;
  const isAddress = hostname.startsWith('[') || /^\d+(?:\.\d+){3}$/.test(hostname);
  return window.isSecureContext && window.PublicKeyCredential !== undefined && !isAddress;
}

/** Creates a passkey and registers it for the account. Throws PasskeyError and the errors of `api`. */
export async function addPasskey({ name, password }: { readonly name: string; readonly password: string }): Promise<void> {
  const optionsJSON = await api.post<CreationOptions>('/console/auth/passkey/generate-register-options', { password });
  const { startRegistration } = await import('@simplewebauthn/browser');
  const response = await startRegistration({ optionsJSON }).catch((error: unknown) => {
    const exists = error instanceof Error && error.name === 'InvalidStateError';
    throw new PasskeyError(exists ? 'This device already has a passkey for your account.' : 'No passkey was created.', { cause: error });
  });
  await api.post('/console/auth/passkey/verify-registration', { name, response });
}

/** Signs in with a passkey, which the user chooses in a dialog of the browser. */
export async function signInWithPasskey(): Promise<void> {
  const optionsJSON = await requestOptions();
  const { startAuthentication } = await import('@simplewebauthn/browser');
  const response = await startAuthentication({ optionsJSON }).catch((error: unknown) => {
    throw new PasskeyError('No passkey was used.', { cause: error });
  });
  await api.post('/console/auth/passkey/verify-authentication', { response });
}

/** Offers passkeys among the suggestions of the email field. True: the user signed in. False: the browser returned no passkey. */
export async function signInByAutofill(): Promise<boolean> {
  const library = await import('@simplewebauthn/browser');
  if (!(await library.browserSupportsWebAuthnAutofill())) return false;
  const optionsJSON = await requestOptions();
  const response = await library.startAuthentication({ optionsJSON, useBrowserAutofill: true }).catch(() => null);
  if (response === null) return false;
  await api.post('/console/auth/passkey/verify-authentication', { response });
  return true;
}

export async function cancelAutofill(): Promise<void> {
  (await import('@simplewebauthn/browser')).WebAuthnAbortService.cancelCeremony();
}

async function requestOptions(): Promise<RequestOptions> {
  const options = await api.get<RequestOptions>('/console/auth/passkey/generate-authenticate-options');
  // A passkey replaces both factors, so the authenticator must verify the user (PIN, fingerprint or face).
  return { ...options, userVerification: 'required' };
}
