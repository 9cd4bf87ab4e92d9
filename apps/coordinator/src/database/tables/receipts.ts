/** Table of the receipts that enclaves signed. */

export interface ReceiptTables {
  receipts: {
    job_id: string;
    account_id: string;
    /** base64url of the signed payload: ids, digests, counts and times. */
    receipt: string;
    receipt_signature: string;
    response_signature: string;
    created_at: number;
  };
}
