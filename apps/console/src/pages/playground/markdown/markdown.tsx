/** `Markdown`: renders the Markdown of a response as React elements, never as raw HTML. Loaded lazily, by `response-text.tsx`. */
import { memo, type ReactNode, useMemo } from 'react';
import { CopyButton } from '../../../ui/forms/copy-field.js';
import { type MarkdownNode, parseMarkdown } from './parse-markdown.js';

export const Markdown = memo(function Markdown({ text }: { readonly text: string }) {
  const nodes = useMemo(() => parseMarkdown(text), [text]);
  return <div className="markdown">{elementsOf(nodes)}</div>;
});

function elementsOf(nodes: readonly MarkdownNode[]): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: a growing response only appends, and nodes have no identity
  return nodes.map((node, index) => <Node key={index} node={node} />);
}

function Node({ node }: { readonly node: MarkdownNode }): ReactNode {
  switch (node.type) {
    case 'text':
      return node.text;
    case 'break':
      return <br />;
    case 'rule':
      return <hr />;
    case 'code':
      return <code>{node.text}</code>;
    case 'code-block':
      return <CodeBlock language={node.language} text={node.text} />;
    case 'link':
      return (
        <a href={node.href} title={node.href} target="_blank" rel="noopener noreferrer nofollow">
          {elementsOf(node.children)}
        </a>
      );
    case 'heading': {
      const Heading = `h${node.level}` as const;
      return <Heading>{elementsOf(node.children)}</Heading>;
    }
    case 'cell': {
      const Cell = node.header ? 'th' : 'td';
      return (
        <Cell data-align={node.align ?? undefined} scope={node.header ? 'col' : undefined}>
          {elementsOf(node.children)}
        </Cell>
      );
    }
    case 'group':
      return elementsOf(node.children);
    case 'element': {
      const { tag: Tag, start, children } = node;
      if (Tag === 'ol') return <ol start={start ?? undefined}>{elementsOf(children)}</ol>;
      if (Tag === 'table') {
        return (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1)
          <div className="markdown-table" tabIndex={0}>
            <table>{elementsOf(children)}</table>
          </div>
        );
      }
      return <Tag>{elementsOf(children)}</Tag>;
    }
  }
}

function CodeBlock({ language, text }: { readonly language: string; readonly text: string }) {
  return (
    <div className="code-block">
      <div className="code-block-head">
        <span>{language === '' ? 'Code' : language}</span>
        <CopyButton value={text} label="Copy code" />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard (WCAG 2.1.1) */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </div>
  );
}
