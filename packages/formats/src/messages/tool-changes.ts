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

/** Tools after all changes. An addition that references a removed tool restores it. References to server tools are ignored. */
export function toolsAfterChanges(tools: readonly MessagesTool[], messages: readonly Message[]): readonly PlacedTool[] {
  const known = tools.map((tool, index): PlacedTool => ({ tool, path: `tools[${index}]` }));
  let inEffect: readonly PlacedTool[] = [...known];
  for (const { block, path } of changesIn(messages)) {
    const { type, name, definition } = block.tool ?? {};
    if (type === 'tool_definition' && definition !== undefined) {
      const defined = { tool: definition, path: `${path}.tool.definition` };
      known.push(defined);
      inEffect = [...setNamed(inEffect, definition.name, false), defined];
    } else if (type === 'tool_reference' && block.type === 'tool_removal') {
      inEffect = setNamed(inEffect, name, false);
    } else if (type === 'tool_reference' && setNamed(inEffect, name, true).length === 0) {
      inEffect = [...inEffect, ...setNamed(known, name, true).slice(-1)];
    }
  }
  return inEffect;
}

/** Tools with this name (`isNamed`), or all others. */
function setNamed(tools: readonly PlacedTool[], name: string | undefined, isNamed: boolean): readonly PlacedTool[] {
  return tools.filter(({ tool }) => (tool.name === name) === isNamed);
}

function* changesIn(messages: readonly Message[]): Iterable<{ readonly block: Block; readonly path: string }> {
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'system' || !Array.isArray(content)) continue;
    for (const [place, block] of content.entries()) {
      if (isToolChange(block)) yield { block, path: `messages[${index}].content[${place}]` };
    }
  }
}
