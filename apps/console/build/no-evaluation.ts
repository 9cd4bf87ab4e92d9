/**
 * Replaces the module with which the schema library tests whether it may compile code. The content security policy forbids
 * compilation, and browsers report even the test as a violation.
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
