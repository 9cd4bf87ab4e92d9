/** Content types and size limits of the end-to-end mode. Sizes are in bytes unless named otherwise. */

import { maxImageBytes } from '../image-parts.js';
import { MAX_IMAGE_PIXELS, MAX_PLAIN_RESPONSE_BYTES } from '../wire/limits.js';

export const E2E_REQUEST_CONTENT_TYPE = 'application/vnd.inference.sealed-request';
export const E2E_RESPONSE_CONTENT_TYPE = 'application/vnd.inference.sealed-response';

/** Maximum candidates of one request. */
export const MAX_E2E_RECIPIENTS = 8;
/** Maximum size of a context's canonical JSON. */
export const MAX_E2E_CONTEXT_BYTES = 4096;
/** Plaintext of every request frame except the last; maximum plaintext of answer frames. */
export const E2E_CHUNK_BYTES = 256 * 1024;
/** AES-GCM tag. */
export const E2E_TAG_BYTES = 16;
/** Flags and length before each ciphertext. */
export const E2E_FRAME_HEADER_BYTES = 4;
/** Maximum ciphertext of one frame, tag included. */
export const MAX_E2E_FRAME_BYTES = E2E_CHUNK_BYTES + E2E_TAG_BYTES;
/** Maximum request body. The sealed request then fits `MAX_REQUEST_BYTES`. */
export const MAX_E2E_BODY_BYTES = 7 * 1024 * 1024 + 768 * 1024;
/** Maximum request body with images. The sealed request then fits `MAX_VISION_REQUEST_BYTES`. */
export const MAX_E2E_VISION_BODY_BYTES = 31 * 1024 * 1024;
/** Maximum head part of a request. `body_bytes` does not include the head. */
export const MAX_E2E_REQUEST_HEAD_BYTES = 1024;
export const MAX_E2E_ANSWER_HEAD_BYTES = 16 * 1024;
/** Maximum checkpoint in the head of an answer, in characters (code points). */
export const MAX_E2E_CHECKPOINT_LENGTH = 4096;
/** Maximum proof part. */
export const MAX_E2E_PROOF_BYTES = 64 * 1024;
/** Maximum body part of an answer. A stream has many body parts. */
export const MAX_E2E_ANSWER_BODY_BYTES = MAX_PLAIN_RESPONSE_BYTES;
/** Maximum image part of an answer. */
export const MAX_E2E_IMAGE_BYTES = maxImageBytes(MAX_IMAGE_PIXELS, 1);
/** Maximum JSON of an abort frame. */
export const MAX_E2E_ABORT_BYTES = 4096;
/** The plaintext of stream frames is padded to multiples of this length. */
export const E2E_STREAM_PADDING_BYTES = 512;
/** Random bytes at the start of a sealed answer. */
export const E2E_RESPONSE_NONCE_BYTES = 32;
