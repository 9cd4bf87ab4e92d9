/** Types of `parse-prometheus-text-format`, a package without types. */
declare module 'parse-prometheus-text-format' {
  interface Sample {
    readonly value?: string;
    readonly labels?: Readonly<Record<string, string>>;
    /** Buckets of a histogram. */
    readonly count?: string;
  }
  interface Family {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly Sample[];
  }
  function parse(text: string): Family[];

  // biome-ignore lint/style/noDefaultExport: the package has a default export.
  export { parse as default };
}
