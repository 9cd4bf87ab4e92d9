/**
 * Applies `tool_addition` and `tool_removal` blocks of the conversation to the list of tools.
 *
 * The chat template renders tools only once, at the start of the prompt, so the model sees the tools after all changes.
 */
import type { Block, Message, MessagesTool } from './schema.js';

/** A tool with its path in the request. */
interface PlacedTool {
  readonly tool: MessagesTool;
  readonly path: string;
}

export function isToolChange({ type }: Block): boolean {
  return type === 'tool_addition' || type === 'tool_removal';
}

/** Tools after all changes. An addition that references a removed tool restores it. References to unknown tools have no effect. */
export function toolsAfterChanges(tools: readonly MessagesTool[], messages: readonly Message[]): readonly PlacedTool[] {
  const known = tools.map((tool, index): PlacedTool => ({ tool, path: `tools[${index}]` }));
  let inEffect: readonly PlacedTool[] = [...known];
  for (const { block, path } of changesIn(messages)) {
    const { type, name, definition } = block.tool ?? {};
    if (type === 'tool_definition' && definition !== undefined) {
      const defined = { tool: definition, path: `${path}.tool.definition` };
      known.push(defined);
      inEffect = [...without(definition.name, inEffect), defined];
    } else if (type === 'tool_reference' && block.type === 'tool_removal') {
      inEffect = without(name, inEffect);
    } else if (type === 'tool_reference' && !inEffect.some(({ tool }) => tool.name === name)) {
      const newest = known.findLast(({ tool }) => tool.name === name);
      if (newest !== undefined) inEffect = [...inEffect, newest];
    }
  }
  return inEffect;
}

function without(name: string | undefined, tools: readonly PlacedTool[]): readonly PlacedTool[] {
  return tools.filter(({ tool }) => tool.name !== name);
}

function* changesIn(messages: readonly Message[]): Iterable<{ readonly block: Block; readonly path: string }> {
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'system' || !Array.isArray(content)) continue;
    for (const [place, block] of content.entries()) {
      if (isToolChange(block)) yield { block, path: `messages[${index}].content[${place}]` };
    }
  }
}
