/** `VerdictLog`: the newest verdicts of the local proxy, without prompts and outputs. */
import { toPrintable } from '@inference/protocol';
import type { E2eVerdict } from '../verdict.js';
import type { Exchange } from '../verified-fetch.js';

/** Maximum verdicts; the oldest is dropped. */
const MAX_VERDICTS = 100;

export interface LoggedVerdict {
  /** ISO 8601. */
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly state: E2eVerdict['state'];
  // Members of refusals.
  readonly code?: string;
  readonly message?: string;
  // Members of verified answers.
  readonly job_id?: string;
  readonly provider_id?: string;
  readonly evidence?: string;
  readonly serial_number?: string;
  readonly enclave_key_sha256?: string;
}

export class VerdictLog {
  readonly #verdicts: LoggedVerdict[] = [];

  /** Newest first. */
  get verdicts(): readonly LoggedVerdict[] {
    return this.#verdicts;
  }

  /** `now` in milliseconds. */
  add(verdict: E2eVerdict, { method, path }: Exchange, now: number): LoggedVerdict {
    const logged = { at: new Date(now).toISOString(), method, path, state: verdict.state, ...detailsOf(verdict) };
    this.#verdicts.unshift(logged);
    this.#verdicts.length = Math.min(this.#verdicts.length, MAX_VERDICTS);
    return logged;
  }
}

export function verdictLine({ at, method, path, state, code, message, provider_id, evidence, serial_number }: LoggedVerdict): string {
  const details = {
    unverified: 'relayed in clear',
    pending: '',
    verified: `provider ${provider_id ?? ''} (${evidence ?? ''}, ${serial_number ?? ''})`,
    refused: `${code ?? ''}: ${message ?? ''}`,
  }[state];
  return toPrintable(`${at} ${method} ${path} ${state.toUpperCase()} ${details}`.trim());
}

function detailsOf(verdict: E2eVerdict): Partial<LoggedVerdict> {
  switch (verdict.state) {
    case 'unverified':
      return {};
    case 'refused':
      return { code: verdict.refusal.code, message: verdict.refusal.message };
    case 'pending':
    case 'verified': {
      const { provider, jobId } = verdict;
      return {
        job_id: jobId,
        provider_id: provider.providerId,
        evidence: provider.evidence,
        serial_number: provider.serialNumber,
        enclave_key_sha256: provider.enclaveKeySha256,
      };
    }
    default:
      return verdict satisfies never;
  }
}
