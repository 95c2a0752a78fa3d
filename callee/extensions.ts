import type { Capability, TaskSubmitPayload } from '../schemas/types.ts';

/** What the SDK itself does, for every capability (hcp.md 7). */
const OURS: readonly string[] = ['replay/1', 'status/1', 'stream/1'];

/** The extensions of a task that are in force, or one that it cannot do without and that is not offered (P9). */
export function negotiate(
  { extensions = {} }: TaskSubmitPayload,
  declaration: Capability,
): { readonly inForce: readonly string[] } | { readonly lacking: string; readonly offered: readonly string[] } {
  const offered = offeredBy(declaration);
  const lacking = Object.keys(extensions).find((name) => !offered.includes(name) && isRequired(extensions[name]));
  if (lacking !== undefined) return { lacking, offered };
  return { inForce: offered.filter((name) => Object.hasOwn(extensions, name)) };
}

/**
 * A vendor's own (`domain/name/major`) are between its executor and the caller: declaring one is offering it. The short
 * names are the protocol's, and declaring one of those does not make the SDK able to do it.
 */
function offeredBy({ extensions = [] }: Capability): readonly string[] {
  return [...OURS, ...extensions.filter((name) => name.split('/').length === 3)];
}

function isRequired(wish: unknown): boolean {
  return typeof wish === 'object' && wish !== null && 'required' in wish && wish.required === true;
}
