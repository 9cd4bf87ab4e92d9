/** Types of the virtual modules that the build generates from the Markdown of the repository (`build/documents`). */
declare module 'virtual:documents' {
  /** Functions that load a document, by path of its page. */
  export const DOCUMENTS: Readonly<Record<string, () => Promise<{ readonly document: BuiltDocument }>>>;

  export interface BuiltDocument {
    readonly title: string;
    readonly tree: import('hast').Root;
    readonly contents: readonly { readonly id: string; readonly title: string }[];
    /** URLs of linked files, by path in the repository. */
    readonly fileUrls: Readonly<Record<string, string>>;
  }
}

declare module 'virtual:documents/search' {
  /** Sections of all documents. */
  export const SECTIONS: readonly {
    /** URL of the section: path of the page with an anchor. */
    readonly href: string;
    /** Title of the document. */
    readonly document: string;
    readonly title: string;
    readonly text: string;
  }[];
}
