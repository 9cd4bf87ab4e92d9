/** Types of the tables of the transparency log. Hashes are hexadecimal. Entries and nodes are append-only. */
export interface TransparencyLogTables {
  /** One row per log. `published_…`: tree of the served checkpoint, which only grows. `cosignatures`: signature lines of witnesses. */
  log_heads: { name: string; origin: string; size: number; published_size: number; published_root: string; cosignatures: string };
  /** `entry`: canonical JSON. */
  log_entries: { leaf_index: number; leaf_hash: string; kind: string; entry: string; created_at: number };
  /** Hashes of complete subtrees. A node covers the 2^level leaves from `node_index` * 2^level on. */
  log_nodes: { level: number; node_index: number; hash: string };
}
