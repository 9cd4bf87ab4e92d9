/** `DocumentContent`: renders a document, with links within the console, copy buttons for code, and scrollable tables. */
/// <reference path="./documents.d.ts" />

import type { BuiltDocument } from 'virtual:documents';
import { toJsxRuntime } from 'hast-util-to-jsx-runtime';
import { toString as textOf } from 'hast-util-to-string';
import { Link as LinkIcon } from 'lucide-react';
import { type ComponentProps, useMemo } from 'react';
import { Fragment, jsx, jsxs } from 'react/jsx-runtime';
import { Link } from 'wouter';
import { CopyField } from '../../ui/forms/copy-field.js';

type ContentProps = Pick<BuiltDocument, 'tree' | 'fileUrls'>;

export function DocumentContent({ tree, fileUrls }: ContentProps) {
  return useMemo(
    () =>
      toJsxRuntime(tree, {
        Fragment,
        jsx,
        jsxs,
        passNode: true,
        components: {
          a: ({ node: _, ...link }) => <DocumentLink {...link} fileUrls={fileUrls} />,
          h2: ({ node: _, ...heading }) => <Heading level="h2" {...heading} />,
          h3: ({ node: _, ...heading }) => <Heading level="h3" {...heading} />,
          pre: ({ node }) => <CopyField label="Code" hideLabel multiline value={node === undefined ? '' : textOf(node).trimEnd()} />,
          table: ({ node: _, ...table }) => (
            // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1)
            <div className="document-table" tabIndex={0}>
              <table {...table} />
            </div>
          ),
          // Screen readers would announce a header cell without text as a column without a name.
          th: ({ node, ...cell }) => (node?.children.length === 0 ? <td /> : <th scope="col" {...cell} />),
        },
      }),
    [tree, fileUrls],
  );
}

function DocumentLink({ href = '', fileUrls, ...link }: ComponentProps<'a'> & Pick<ContentProps, 'fileUrls'>) {
  if (href.startsWith('/')) return <Link {...link} href={href} />;
  const file = href.startsWith('file:') ? fileUrls[href.slice('file:'.length)] : undefined;
  return <a {...link} href={file ?? href} />;
}

function Heading({ level: Level, children, id, ...heading }: ComponentProps<'h2'> & { readonly level: 'h2' | 'h3' }) {
  return (
    <Level {...heading} id={id}>
      {children}
      {id === undefined ? null : (
        <a className="document-anchor" href={`#${id}`} aria-label="Link to this section">
          <LinkIcon size={16} aria-hidden="true" />
        </a>
      )}
    </Level>
  );
}
