/** `fetchCoordinatorView`: downloads how the coordinator sees this provider (trust, jobs, earnings), authorized by the session token. */
import { lazyValidator, type ProviderStatusAnswer, ProviderStatusSchema } from '@inference/protocol';

/** `problem`: a sentence for the owner. */
type CoordinatorView = { readonly view: ProviderStatusAnswer; readonly problem: null } | { readonly view: null; readonly problem: string };

/** Maximum duration of the request. Commands such as `status` wait for the answer. */
const VIEW_MS = 2_500;
const statusValidator = lazyValidator(ProviderStatusSchema);

/** Derives the coordinator's HTTP address from its WebSocket address. */
export function coordinatorUrl(socketUrl: string): string {
  return socketUrl.replace(/^ws/, 'http').replace(/\/provider\/v1\/socket$/, '');
}

/** `token` is null without a session, or if the coordinator gave none. Never rejects. */
export async function fetchCoordinatorView(socketUrl: string, token: string | null): Promise<CoordinatorView> {
  const failed = (problem: string): CoordinatorView => ({ view: null, problem });
  if (token === null) return failed('not connected to the coordinator, or the coordinator gives no status');
  try {
    const response = await fetch(`${coordinatorUrl(socketUrl)}/v1/providers/me`, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(VIEW_MS),
      redirect: 'error',
    });
    const value: unknown = await response.json();
    if (!response.ok) return failed(`the coordinator answered with status ${response.status}`);
    return statusValidator().Check(value) ? { view: value, problem: null } : failed('the answer of the coordinator was not understood');
  } catch (error) {
    const late = error instanceof Error && error.name === 'TimeoutError';
    return failed(late ? 'the coordinator did not answer in time' : 'the coordinator cannot be reached');
  }
}
