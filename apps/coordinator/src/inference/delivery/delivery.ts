/**
 * How a job's bytes reach its client. A stream writes them as they come; a plain answer holds them until they are verified.
 * Calls come in this order: any number of (`begin`, `commit`, `push`…, `withdraw`), then `deliver` or `fail`, once.
 */
import type { ApiError, SignedParts } from '@inference/formats';
import type { Receipt } from '@inference/protocol';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';

/** An answer of which the signed bytes are a part: images travel beside the body that names them. */
export interface Attachments {
  /** Hexadecimal SHA-256 of the signed bytes, or what is wrong with what came. */
  signedSha256(): { readonly sha256: string } | { readonly problem: `image.${string}` };
  /** What is wrong with the rest of it, by a receipt that verified; null: nothing. */
  examine(receipt: Receipt): Promise<'response_body' | `image.${string}` | `receipt.${string}` | null>;
  /** Puts aside what the client will fetch, before the job is paid. Rejects when that cannot be done. */
  keep(): Promise<void>;
}

export interface Delivery {
  /** Of answers that are more than their signed bytes. */
  readonly attachments?: Attachments;
  /** Status and headers are out: no other provider can take over, and an error can only be told inside the stream. */
  readonly committed: boolean;
  /** The client does not take what was written; the provider is out of credit because of it. */
  readonly stalled: boolean;
  /** Content bytes that the client's connection has taken. */
  readonly delivered: number;
  /** A provider starts on the job. `grant` returns credit to it as its bytes drain. */
  begin(provider: ProviderConnection, grant: (bytes: number) => void): void;
  /** The provider is at work but has said nothing yet, and the client must not wait longer for a stream's headers. A plain answer takes no notice. */
  commit(): void;
  /** The next bytes of the response, and when they came (`performance.now`). False when they are more than a client may be sent. */
  push(bytes: Uint8Array, cameAt: number): boolean;
  /** The provider failed before anything was committed. */
  withdraw(): void;
  /** Everything was verified. `cost` in micro-USD, or null when it is not known yet. */
  deliver(signed: SignedParts, cost: MicroUsd | null): void;
  fail(error: ApiError): void;
}
