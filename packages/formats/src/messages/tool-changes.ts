/**
 * Tools that come and go in the course of a conversation: `tool_addition` and `tool_removal` blocks of system messages. The
 * model is told of the tools once, at the beginning, so what counts is what they have come to at the end.
 */
import type { Block, Message, MessagesTool } from './schema.js';

/** A tool, and where in the request it stands. */
export interface PlacedTool {
  readonly tool: MessagesTool;
  readonly path: string;
}

export function isToolChange({ type }: Block): boolean {
  return type === 'tool_addition' || type === 'tool_removal';
}

/**
 * The tools after all changes. A reference to a tool that is there, deferred or not, adds nothing; to one that was removed, it
 * brings that back. References to tools that run elsewhere name none of these.
 */
export function toolsAfterChanges(tools: readonly MessagesTool[], messages: readonly Message[]): readonly PlacedTool[] {
  const known = tools.map((tool, index): PlacedTool => ({ tool, path: `tools[${index}]` }));
  let inEffect: readonly PlacedTool[] = [...known];
  for (const { block, path } of changesIn(messages)) {
    const { type, name, definition } = block.tool ?? {};
    if (type === 'tool_definition' && definition !== undefined) {
      const defined = { tool: definition, path: `${path}.tool.definition` };
      known.push(defined);
      inEffect = [...named(inEffect, definition.name, false), defined];
    } else if (type === 'tool_reference' && block.type === 'tool_removal') {
      inEffect = named(inEffect, name, false);
    } else if (type === 'tool_reference' && named(inEffect, name, true).length === 0) {
      inEffect = [...inEffect, ...named(known, name, true).slice(-1)];
    }
  }
  return inEffect;
}

/** Those that have this name, or those that have not. */
function named(tools: readonly PlacedTool[], name: string | undefined, wanted: boolean): readonly PlacedTool[] {
  return tools.filter(({ tool }) => (tool.name === name) === wanted);
}

function* changesIn(messages: readonly Message[]): Iterable<{ readonly block: Block; readonly path: string }> {
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'system' || !Array.isArray(content)) continue;
    for (const [place, block] of content.entries()) {
      if (isToolChange(block)) yield { block, path: `messages[${index}].content[${place}]` };
    }
  }
}
