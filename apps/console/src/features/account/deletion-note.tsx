/** `DeletionNote`: warning before the deletion of an account. Lists the data that is erased and the data that remains. */
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
