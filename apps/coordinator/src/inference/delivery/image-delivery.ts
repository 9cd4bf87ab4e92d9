/**
 * `ImageDelivery` buffers an image response that the coordinator can read, and checks its images against receipt and request.
 *
 * Images that the client downloads by URL go to the image store. The body is sent through `PlainDelivery`.
 */
import type { ApiError, ImagesAnswer, SignedParts } from '@inference/formats';
import { ImagesAnswerSchema, pixelsOf, type ResponseMetadata, schemaCheck } from '@inference/formats';
import {
  fromBase64,
  fromUtf8,
  IMAGE_PART_HEADER_BYTES,
  type ImageParts,
  ImagePartsError,
  ImagePartsReader,
  type Receipt,
} from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ImageAllocation } from '../../images/image-store.js';
import { inspectImage } from '../../images/inspect-image.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import { type ImageJob, maxBodyBytes, maxBytesOf } from '../request/image-job.js';
import type { Route } from '../request/job-routing.js';
import type { Attachments, Delivery } from './delivery.js';

interface ImageDeliveryOptions {
  readonly plain: Delivery;
  readonly responseMetadata: ResponseMetadata;
  readonly imageJob: ImageJob;
  /** Space in the image store for the images. Null if the body contains the images. */
  readonly allocation: ImageAllocation | null;
  /** Called when the image store has no room. The caller must cancel the job. */
  readonly onNoRoom: () => void;
  /** Maximum time from the first byte of an attempt to its last, in milliseconds. */
  readonly maxMs: number;
}

const readAnswer = schemaCheck(ImagesAnswerSchema);

export class ImageDelivery implements Delivery {
  readonly #options: ImageDeliveryOptions;
  readonly #maxBytes: number;
  #grant: (bytes: number) => void = () => {};
  #reader: ImagePartsReader;
  #bytes = 0;
  #providerId = '';
  #firstAt: number | null = null;
  #problem: `image.${string}` | null = null;
  #parts: ImageParts | null = null;
  /** No byte is sent before the end, so another provider can always take over. */
  readonly isCommitted = false;
  readonly isStalled = false;
  readonly attachments: Attachments;

  constructor(options: ImageDeliveryOptions) {
    this.#options = options;
    const bounds = this.#bounds;
    this.#maxBytes = bounds.images * (IMAGE_PART_HEADER_BYTES + bounds.maxImageBytes) + IMAGE_PART_HEADER_BYTES + bounds.maxBodyBytes;
    this.#reader = new ImagePartsReader(bounds);
    this.attachments = {
      signedSha256: () => this.#signedSha256(),
      verify: (receipt) => this.#verify(receipt),
      store: async () => this.#options.allocation?.store(this.#parts?.images ?? []),
    };
  }

  get delivered(): number {
    return this.#options.plain.delivered;
  }

  begin(provider: ProviderConnection, grant: (bytes: number) => void, route: Route): void {
    this.#grant = grant;
    this.#providerId = provider.registration.identity.providerId;
    this.#options.plain.begin(provider, () => {}, route);
  }

  commit(): void {}

  push(bytes: Uint8Array, receivedAt: number): boolean {
    this.#firstAt ??= receivedAt;
    this.#bytes += bytes.length;
    if (this.#bytes > this.#maxBytes || receivedAt - this.#firstAt > this.#options.maxMs) return false;
    if (this.#options.allocation?.holdBytes(bytes.length, this.#providerId) === false) {
      this.#options.onNoRoom();
      return true;
    }
    if (this.#problem === null) {
      try {
        this.#reader.push(bytes);
      } catch (error) {
        if (!(error instanceof ImagePartsError)) throw error;
        this.#problem = `image.${error.problem}`;
      }
    }
    this.#grant(bytes.length);
    return true;
  }

  withdraw(): void {
    this.#reader = new ImagePartsReader(this.#bounds);
    this.#bytes = 0;
    this.#firstAt = null;
    this.#problem = null;
    this.#parts = null;
    this.#options.allocation?.releaseBytes();
    this.#options.plain.withdraw();
  }

  deliver(signed: SignedParts, cost: MicroUsd | null): void {
    const { plain } = this.#options;
    if (this.#parts !== null) plain.push(this.#parts.body, performance.now());
    plain.deliver(signed, cost);
    this.#parts = null;
  }

  fail(error: ApiError): void {
    this.#options.plain.fail(error);
  }

  get #bounds() {
    const { imageJob, allocation } = this.#options;
    return {
      images: allocation === null ? 0 : imageJob.count,
      maxImageBytes: maxBytesOf(imageJob.pixels),
      // Requests with a larger response were rejected earlier.
      maxBodyBytes: maxBodyBytes(imageJob) ?? 0,
    };
  }

  #signedSha256(): ReturnType<Attachments['signedSha256']> {
    if (this.#problem !== null) return { problem: this.#problem };
    try {
      this.#parts = this.#reader.end();
      return { sha256: sha256Hex(this.#parts.body) };
    } catch (error) {
      if (!(error instanceof ImagePartsError)) throw error;
      return { problem: `image.${error.problem}` };
    }
  }

  async #verify(receipt: Receipt): ReturnType<Attachments['verify']> {
    const { imageJob } = this.#options;
    if (this.#parts === null) return 'image.cut_off';
    if (receipt.usage.images !== imageJob.count) return 'receipt.usage.images';
    const images = this.#imagesOf(this.#parts, receipt);
    if (images === null) return 'response_body';
    const hashes = receipt.image_sha256 ?? [];
    if (hashes.length !== images.length || images.some((image, index) => sha256Hex(image) !== hashes[index])) return 'receipt.image_sha256';
    const expected = { format: imageJob.format, ...pixelsOf(imageJob.pixels) };
    const problems = await Promise.all(images.map((image) => inspectImage(image, expected)));
    return problems.find((problem) => problem !== null) ?? null;
  }

  /** The images, if the body describes exactly these. */
  #imagesOf({ images, body }: ImageParts, { usage }: Receipt): readonly Uint8Array[] | null {
    const { imageJob, responseMetadata } = this.#options;
    const answer = readBody(body);
    if (answer === null || answer.data.length !== imageJob.count || answer.created !== responseMetadata.created) return null;
    if (answer.output_format !== imageJob.format || answer.size !== imageJob.pixels) return null;
    const { input_tokens, output_tokens, total_tokens, input_tokens_details } = answer.usage;
    if (input_tokens !== usage.prompt_tokens || output_tokens !== usage.completion_tokens || total_tokens !== usage.total_tokens)
      return null;
    if (input_tokens_details.text_tokens !== usage.prompt_tokens || input_tokens_details.image_tokens !== 0) return null;
    if (imageJob.urls !== null) {
      const { urls } = imageJob;
      return answer.data.every((image, index) => 'url' in image && image.url === urls[index]) ? images : null;
    }
    return imagesInBody(answer, maxBytesOf(imageJob.pixels));
  }
}

function readBody(body: Uint8Array): ImagesAnswer | null {
  try {
    return readAnswer(JSON.parse(fromUtf8(body)));
  } catch {
    // Not UTF-8, not JSON, or of another shape.
    return null;
  }
}

function imagesInBody({ data }: ImagesAnswer, maxBytes: number): readonly Uint8Array[] | null {
  const images: Uint8Array[] = [];
  for (const image of data) {
    if (!('b64_json' in image)) return null;
    try {
      images.push(fromBase64(image.b64_json));
    } catch {
      return null;
    }
  }
  return images.every(({ length }) => length <= maxBytes) ? images : null;
}
