/** Moves the style sheet before the scripts of `index.html`, because browsers paint nothing before the style sheet has arrived. */
import type { Plugin } from 'vite';

const STYLE_SHEET = /\s*<link rel="stylesheet"[^>]*>/g;

export function stylesheetFirst(): Plugin {
  return {
    name: 'stylesheet-first',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (html) => {
        const links = html.match(STYLE_SHEET) ?? [];
        return html.replaceAll(STYLE_SHEET, '').replace(/\s*<script/, (script) => links.join('') + script);
      },
    },
  };
}
