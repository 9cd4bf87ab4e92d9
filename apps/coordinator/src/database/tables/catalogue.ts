/** Models that the operator knows, and the files that may be served under their ids. */
export interface CatalogueTables {
  catalogue_models: {
    id: string;
    display_name: string;
    quantization: string;
    model_type: 'text' | 'embedding' | 'image';
    /** Of a machine that serves it; null: not said. */
    min_memory_bytes: number | null;
    created_at: number;
    updated_at: number;
  };
  catalogue_files: { model_id: string; sha256: string };
}
