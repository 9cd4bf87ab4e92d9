/**
 * `ImageFetcher` downloads the images at `https` URLs in requests, if the operator allows it.
 *
 * Against server-side request forgery, only port 443 of public addresses is allowed, also after redirects, which are limited.
 *
 * Bytes, time, concurrency and rate are limited. No cookie, credential or header of the client is sent.
 */
import { Resolver } from 'node:dns/promises';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { COULD_NOT_PROCESS, checkInputImage, imageTypeOf, RequestError } from '@inference/formats';
import { type InputImageType, MAX_INPUT_IMAGE_BYTES } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';
import ipaddr from 'ipaddr.js';
import { Semaphore } from '../../semaphore.js';

export interface ImageUrl {
  readonly url: string;
  /** Path of the image's part in the client's request. */
  readonly field: string;
}

export interface FetchedInputImage {
  readonly mediaType: InputImageType;
  readonly bytes: Uint8Array;
  /** Width × height, as declared in the file's header. */
  readonly pixels: number;
  /** Lowercase hexadecimal. */
  readonly sha256: string;
}

/** Overrides for tests. */
interface ImageFetcherOptions {
  /** Whether a connection to the address is allowed. Default: public addresses. */
  readonly isAllowed?: (address: string) => boolean;
  /** Addresses of a host name. Default: DNS, without the hosts file. */
  readonly resolve?: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** Default: 443. */
  readonly port?: string;
  /** PEM of a trusted certificate. Default: the certificate authorities of the system. */
  readonly ca?: string;
  readonly totalMs?: number;
}

/** Time for all images of a request, redirects included, in milliseconds. */
const TOTAL_MS = 15_000;
/** Timeout of the first query to one name server, in milliseconds. */
const DNS_TIMEOUT_MS = 2000;
const DNS_TRIES = 2;
const MAX_REDIRECTS = 3;
const MAX_CONCURRENT = 32;
const MAX_CONCURRENT_PER_ACCOUNT = 4;
const MAX_URLS_PER_MINUTE = 120;
const MINUTE_MS = 60_000;
const MAX_ACCOUNTS = 20_000;
const MAX_URL_LENGTH = 4096;

/** Limits of one account. */
interface AccountLimits {
  readonly slots: Semaphore;
  /** Start of the minute in which `urlCount` URLs were charged. */
  windowStart: number;
  urlCount: number;
}

export class ImageFetcher {
  readonly #options: Required<Omit<ImageFetcherOptions, 'ca'>> & Pick<ImageFetcherOptions, 'ca'>;
  readonly #slots = new Semaphore(MAX_CONCURRENT);
  readonly #accounts = new BoundedMap<string, AccountLimits>(MAX_ACCOUNTS);

  constructor(options: ImageFetcherOptions = {}) {
    this.#options = { isAllowed: isPublicAddress, resolve: addressesOf, port: '443', totalMs: TOTAL_MS, ...options };
  }

  /**
   * Fetches images, by URL. Throws RequestError that names the request part of the first failed image.
   *
   * @param claim Reserves memory for received bytes. Returns false if there is none, and the request is then refused.
   */
  async fetchAll(
    urls: readonly ImageUrl[],
    { accountId, claim, signal }: { readonly accountId: string; readonly claim: (bytes: number) => boolean; readonly signal: AbortSignal },
  ): Promise<ReadonlyMap<string, FetchedInputImage>> {
    const account = this.#admit(accountId, urls);
    const failed = new AbortController();
    const ended = AbortSignal.any([signal, failed.signal, AbortSignal.timeout(this.#options.totalMs)]);
    const fetchOne = async ({ url, field }: ImageUrl): Promise<[string, FetchedInputImage]> => {
      try {
        return [url, await account.slots.run(() => this.#slots.run(() => this.#fetch(url, { field, claim, signal: ended })))];
      } catch (error) {
        failed.abort();
        throw error;
      }
    };
    return new Map(await Promise.all(urls.map(fetchOne)));
  }

  /** Charges the URLs to the account. Throws RequestError above the account's rate. */
  #admit(accountId: string, urls: readonly ImageUrl[]): AccountLimits {
    const now = performance.now();
    const account = this.#accounts.get(accountId) ?? { slots: new Semaphore(MAX_CONCURRENT_PER_ACCOUNT), windowStart: now, urlCount: 0 };
    if (now - account.windowStart >= MINUTE_MS) {
      account.windowStart = now;
      account.urlCount = 0;
    }
    account.urlCount += urls.length;
    this.#accounts.set(accountId, account);
    if (account.urlCount > MAX_URLS_PER_MINUTE) {
      const limit = `At most ${MAX_URLS_PER_MINUTE} images a minute are fetched from URLs for an account.`;
      const message = `${limit} Send the images themselves, in base64.`;
      throw new RequestError('rate_limit_exceeded', urls[0]?.field ?? null, message);
    }
    return account;
  }

  async #fetch(first: string, { field, claim, signal }: FetchTerms): Promise<FetchedInputImage> {
    let url = this.#parsed(first, field);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const response = await this.#get(url, field, signal);
      const { statusCode = 0, headers } = response;
      if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
        response.destroy();
        url = this.#parsed(headers.location, field, url);
        continue;
      }
      if (statusCode !== 200) {
        response.destroy();
        throw failure(field, `The server of its URL answered with status ${statusCode}.`);
      }
      return await readImage(response, { field, claim, signal });
    }
    throw failure(field, `Its URL redirects more than ${MAX_REDIRECTS} times.`);
  }

  /** Parses a URL, relative to the redirecting URL `base`. Throws RequestError if the URL may not be requested. */
  #parsed(text: string, field: string, base?: URL): URL {
    const url = text.length <= MAX_URL_LENGTH && URL.canParse(text, base?.href) ? new URL(text, base) : null;
    if (url === null || url.username !== '' || url.password !== '') throw failure(field, 'Its URL is not valid.');
    if (url.protocol !== 'https:' || (url.port || '443') !== this.#options.port) {
      throw failure(field, 'Its URL, and each redirect, must begin with https and use the port 443.');
    }
    return url;
  }

  /** Resolves when the response headers have arrived. Connects only to addresses that were checked. */
  #get(url: URL, field: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { isAllowed, resolve: resolveHost, ca } = this.#options;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if (isIP(host) !== 0 && !isAllowed(host)) throw notPublic(field);
    const lookup: LookupFunction = (hostname, { all }, callback) => {
      const onResolved = (found: readonly string[]): void => {
        const addresses = found.map((address) => ({ address, family: isIP(address) }));
        const [first] = addresses;
        if (first === undefined) callback(new Error('the name has no address'), '');
        // Refused if any address is private, because any of them may be used.
        else if (!found.every((address) => isAllowed(address))) callback(new PrivateAddressError(), '');
        else if (all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      };
      const fail = (): void => callback(new Error('the name was not resolved'), '');
      resolveHost(hostname, signal).then(onResolved, fail);
    };
    return new Promise((resolve, reject) => {
      // No connection pool: a pooled socket may be connected to the address of another name.
      const request = httpsRequest(url, {
        agent: false,
        lookup,
        signal,
        headers: { accept: 'image/png, image/jpeg, image/webp, image/gif', 'user-agent': 'inference-coordinator' },
        ...(ca === undefined ? {} : { ca }),
      });
      request.on('response', resolve);
      request.on('error', (error) => {
        if (error instanceof PrivateAddressError) reject(notPublic(field));
        else reject(signal.aborted ? timedOut(field) : failure(field, 'Its URL could not be fetched.'));
      });
      // A 101 response ends the request without an error and without a response.
      request.on('close', () => reject(failure(field, 'Its URL could not be fetched.')));
      request.end();
    });
  }
}

interface FetchTerms {
  readonly field: string;
  readonly claim: (bytes: number) => boolean;
  readonly signal: AbortSignal;
}

class PrivateAddressError extends Error {
  constructor() {
    super('the address is not public');
    this.name = 'PrivateAddressError';
  }
}

/**
 * Addresses of a name in DNS, none if the lookup fails. Rejects when aborted.
 *
 * `dns.lookup` cannot be aborted and shares few threads, so unresolvable names would delay lookups of the database and mail server.
 */
async function addressesOf(host: string, signal: AbortSignal): Promise<readonly string[]> {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    // A name may have addresses of one family only.
    const families = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    signal.throwIfAborted();
    return families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []));
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** Whether an IP address is public unicast. An IPv6 address with an embedded IPv4 address is checked by that address, or rejected. */
export function isPublicAddress(address: string): boolean {
  const bare = address.replace(/%.*$/, '');
  if (!ipaddr.isValid(bare)) return false;
  const parsed = ipaddr.process(bare);
  if (parsed.range() !== 'unicast') return false;
  // Global IPv6 unicast is 2000::/3. The library's `unicast` is wider: for example ::7f00:1 and the local NAT64 prefix 64:ff9b:1::/48.
  const [first = 0] = parsed.toByteArray();
  return parsed.kind() === 'ipv4' || first >> 5 === 1;
}

async function readImage(response: IncomingMessage, { field, claim, signal }: FetchTerms): Promise<FetchedInputImage> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > MAX_INPUT_IMAGE_BYTES) break;
      if (!claim(chunk.length))
        throw new RequestError('overloaded', null, 'The service holds as many requests as it can. Try again in a moment.');
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw signal.aborted ? timedOut(field) : failure(field, 'Its URL could not be fetched.');
  } finally {
    response.destroy();
  }
  if (length > MAX_INPUT_IMAGE_BYTES) {
    const message = `${field}: image exceeds the maximum of ${MAX_INPUT_IMAGE_BYTES / 2 ** 20} MiB. Send a smaller image.`;
    throw new RequestError('invalid_request', field, message);
  }
  const bytes = Buffer.concat(chunks);
  const mediaType = imageTypeOf(bytes);
  if (mediaType === null) throw failure(field, 'Its URL does not lead to a PNG, JPEG, WebP or GIF image.');
  const checked = checkInputImage(bytes, mediaType);
  if (typeof checked === 'string') throw new RequestError('invalid_request', field, `${field}: ${checked}`);
  return { ...checked, bytes, sha256: sha256Hex(bytes) };
}

function notPublic(field: string): RequestError {
  return failure(field, 'Its URL leads to an address that is not public.');
}

function timedOut(field: string): RequestError {
  return failure(field, 'Its URL was not fetched in time.');
}

function failure(field: string, reason: string): RequestError {
  return new RequestError('invalid_request', field, `${field}: ${COULD_NOT_PROCESS} ${reason}`);
}
