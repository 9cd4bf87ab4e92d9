/**
 * Replaces the check of the schema library for permission to compile code. The content security policy forbids compilation, and
 * even the check is reported as a violation in every browser.
 */
import type { Plugin } from 'vite';

const MODULE = /typebox\/build\/system\/environment\/evaluate\.mjs$/;
const REPLACEMENT = `
export function CanEvaluate() { return false; }
export function Evaluate() { throw new Error('this page may not compile code'); }
`;

export function noEvaluation(): Plugin {
  let found = false;
  return {
    name: 'no-evaluation',
    enforce: 'pre',
    load(id) {
      if (!MODULE.test(id)) return null;
      found = true;
      return REPLACEMENT;
    },
    buildEnd(error) {
      if (error === undefined && !found) this.warn('the module of typebox that compiles code was not met: was it renamed?');
    },
  };
}
