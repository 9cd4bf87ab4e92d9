/** `openImages` creates the image store and the repositories of receipts. */
import { join } from 'node:path';
import { ReceiptRepository } from '../database/providers/receipt-repository.js';
import { sharedSecret } from '../database/secret-repository.js';
import type { Database } from '../database/tables.js';
import { DeferredReceipts } from '../images/deferred-receipts.js';
import { ImageStore } from '../images/image-store.js';
import { errorFacts } from '../log.js';
import type { StartContext } from './start-context.js';

/** Name of the HMAC key for image tokens in the database. Another name would invalidate URLs in use. */
const IMAGE_TOKEN_SECRET = 'image-address';

export interface ImageServices {
  readonly receipts: ReceiptRepository;
  /** For receipts with image URLs, which reach the database only after the URLs have expired. */
  readonly deferredReceipts: DeferredReceipts;
  readonly imageStore: ImageStore;
}

export async function openImages(context: StartContext, database: Database): Promise<ImageServices> {
  const { config, now, log, directory, onWriteError, disposal } = context;
  const receipts = new ReceiptRepository({ database, onWriteError });
  disposal.defer(() => receipts.close());
  const deferredReceipts = new DeferredReceipts(receipts, now);
  disposal.defer(() => deferredReceipts.close());
  const imageStore = await ImageStore.open({
    directory: join(directory, 'images'),
    maxBytes: config.images.storeBytes,
    sharePercent: config.imageSharePercent,
    lifetimeMs: config.images.urlMs,
    macKey: await sharedSecret(database, IMAGE_TOKEN_SECRET),
    now,
    onError: (error) => log.error({ error: errorFacts(error) }, 'image store failed'),
  });
  disposal.defer(() => imageStore.close());
  return { receipts, deferredReceipts, imageStore };
}
