/** `DeletionNote`: lists the data that an account's deletion erases, and the data that remain, before the deletion. */
import { Link } from 'wouter';

export function DeletionNote() {
  return (
    <>
      <p>
        <strong>Erased:</strong> names, email and billing addresses, IP addresses, passkeys and passwords, names of keys and machines,
        receipts and failed requests.
      </p>
      <p>
        <strong>Kept for the books, under a random id:</strong> amounts of requests, deposits and withdrawals, with model, token counts and
        times. <Link href="/docs/data-protection#deletion">Details</Link>
      </p>
    </>
  );
}
