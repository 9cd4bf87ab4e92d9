/** `searchIndex`: full-text index of all documents. Loaded lazily, because the texts have some hundred kilobytes. */
/// <reference path="./documents.d.ts" />

import { SECTIONS } from 'virtual:documents/search';
import MiniSearch from 'minisearch';
import { excerpt } from './excerpt.js';

interface SearchResult {
  readonly href: string;
  readonly document: string;
  readonly title: string;
  readonly excerpt: string;
}

interface SearchIndex {
  readonly maxResults: number;
  /** Best first. */
  readonly search: (query: string) => readonly SearchResult[];
}

const MAX_RESULTS = 20;

export function searchIndex(): SearchIndex {
  const index = new MiniSearch({ fields: ['title', 'document', 'text'] });
  index.addAll(SECTIONS.map((section, id) => ({ id, ...section })));
  const options = { boost: { title: 4, document: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' } as const;
  return {
    maxResults: MAX_RESULTS,
    search: (query) =>
      index
        .search(query, options)
        .slice(0, MAX_RESULTS)
        .flatMap(({ id, terms }) => {
          const section = SECTIONS[id];
          return section === undefined ? [] : [{ ...section, excerpt: excerpt(section.text, terms) }];
        }),
  };
}
