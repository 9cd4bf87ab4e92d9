/** `gbnf` serializes a grammar to GBNF, llama.cpp's grammar notation. */
import type { CodePointRanges, Grammar, Term } from './grammar.js';

export function gbnf({ classes, rules }: Grammar): string {
  const spelled = classes.map(spellClass);
  const name = (term: Term) => (term < 0 ? (spelled[~term] ?? '') : ruleName(term));
  return rules
    .map((alternatives, rule) => {
      const choices = alternatives.map((sequence) => (sequence.length === 0 ? '""' : sequence.map(name).join(' ')));
      return `${ruleName(rule)} ::= ${choices.join(' | ')}`;
    })
    .join('\n');
}

function ruleName(rule: number): string {
  return rule === 0 ? 'root' : `r${rule}`;
}

function spellClass(ranges: CodePointRanges): string {
  let spelled = '';
  for (let i = 0; i + 1 < ranges.length; i += 2) {
    const [from, to] = [ranges[i] as number, ranges[i + 1] as number];
    spelled += from === to ? spellCode(from) : `${spellCode(from)}-${spellCode(to)}`;
  }
  return `[${spelled}]`;
}

function spellCode(code: number): string {
  return `\\U${code.toString(16).padStart(8, '0')}`;
}
