/** Types of a package that has none: what it gives for a text of metrics. */
declare module 'parse-prometheus-text-format' {
  interface Sample {
    readonly value?: string;
    readonly labels?: Readonly<Record<string, string>>;
    /** Of a histogram. */
    readonly count?: string;
  }
  interface Family {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly Sample[];
  }
  function parse(text: string): Family[];

  // biome-ignore lint/style/noDefaultExport: it is the package that has one.
  export { parse as default };
}
