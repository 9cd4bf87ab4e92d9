/**
 * `checkLog`: recomputes the Merkle tree of the transparency log from its entries, and compares the stored hashes with it.
 *
 * The log is append-only. Its published head (size and root hash) commits the operator to the entries.
 */
import { leafHash, nodeHash, type Sha256, toHex, treeRoot, utf8 } from '@inference/protocol';
import { LogRepository } from '../log-repository.js';
import type { Database } from '../tables.js';

const PAGE = 1000;

/** One sentence per problem; empty if the log is correct. */
export async function checkLog(database: Database, sha256: Sha256): Promise<string[]> {
  const head = await database.selectFrom('log_heads').selectAll().executeTakeFirst();
  if (head === undefined) return [];
  if (head.published_size > head.size) return [`the log has ${head.size} entries, and ${head.published_size} are published`];
  const problems: string[] = [];
  const tree = new TreeHash(sha256);
  let publishedRoot = head.published_size === 0 ? tree.root() : null;
  for (let next = 0; next < head.size; ) {
    const rows = await database
      .selectFrom('log_entries')
      .select(['leaf_index', 'leaf_hash', 'entry'])
      .where('leaf_index', '>=', next)
      .orderBy('leaf_index')
      .limit(PAGE)
      .execute();
    for (const { leaf_index, leaf_hash, entry } of rows) {
      const leaf = leafHash(sha256, utf8(entry));
      if (leaf_index !== next) return [...problems, `entry ${next} of the log is missing`];
      if (toHex(leaf) !== leaf_hash) problems.push(`entry ${next} of the log was changed`);
      tree.add(leaf);
      next++;
      if (next === head.published_size) publishedRoot = tree.root();
    }
    if (rows.length === 0) return [...problems, `entry ${next} of the log is missing`];
  }
  if (publishedRoot === null || toHex(publishedRoot) !== head.published_root)
    problems.push('the published root is not that of the entries');
  const { subtree } = await LogRepository.open(database, sha256, head.origin);
  const stored = await treeRoot(sha256, subtree, head.size).catch(() => null);
  if (stored === null || toHex(stored) !== toHex(tree.root())) problems.push('the stored nodes of the log are not those of its entries');
  return problems;
}

/** Computes the root of a growing tree. Stores the hashes of its complete subtrees, the largest first (RFC 6962 section 2.1). */
class TreeHash {
  readonly #sha256: Sha256;
  readonly #subtrees: { readonly leaves: number; readonly hash: Uint8Array }[] = [];

  constructor(sha256: Sha256) {
    this.#sha256 = sha256;
  }

  add(leaf: Uint8Array): void {
    let subtree = { leaves: 1, hash: leaf };
    for (let last = this.#subtrees.at(-1); last?.leaves === subtree.leaves; last = this.#subtrees.at(-1)) {
      this.#subtrees.pop();
      subtree = { leaves: 2 * subtree.leaves, hash: nodeHash(this.#sha256, last.hash, subtree.hash) };
    }
    this.#subtrees.push(subtree);
  }

  root(): Uint8Array {
    const hashes = this.#subtrees.map(({ hash }) => hash);
    return hashes.length === 0 ? this.#sha256(new Uint8Array()) : hashes.reduceRight((right, left) => nodeHash(this.#sha256, left, right));
  }
}
