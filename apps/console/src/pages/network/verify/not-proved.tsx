/** What no check of a record can show. It stands beside every verdict, good ones above all. */

export function NotProved() {
  return (
    <section className="stack-small not-proved">
      <h3>What this does not prove</h3>
      <ul className="plain-list">
        <li>That the enclave key lives in the attested machine: whoever holds the key may relay what another machine attests.</li>
        <li>Which program runs on the machine, what it keeps in memory, and what it does with a prompt.</li>
        <li>The cross-check by device management, and that a challenge was fresh when it was sent: both are the coordinator's word.</li>
        <li>That a certificate was not revoked: the maker publishes no revocation for these.</li>
        <li>At trust level “self-signed”, anything about the machine beyond its own word.</li>
        <li>What the coordinator does with requests and answers, which it sees in memory while it passes them on.</li>
      </ul>
      <p className="muted small">
        This page itself came from the coordinator. Who does not want to trust it runs the same verifier from a copy of their own:{' '}
        <code>inference-verify network</code> and this address.
      </p>
    </section>
  );
}
