import type { Capability, TaskSubmitPayload } from '../schemas/types.ts';

/** What the SDK does by itself, for every capability (hcp.md 7). */
export const OURS: readonly string[] = ['replay/1', 'status/1', 'stream/1', 'approval/1', 'cure/1'];

/** What the SDK does with the help of an executor: in force where the capability declares it. */
const WITH_EXECUTOR: readonly string[] = ['pause/1', 'resume/1'];

/** The extensions of a task that are in force, or one that it cannot do without and that is not offered (P9). */
export function negotiate(
  { extensions = {} }: TaskSubmitPayload,
  declaration: Capability,
  ours: readonly string[],
): { readonly inForce: readonly string[] } | { readonly lacking: string; readonly offered: readonly string[] } {
  const offered = offeredBy(declaration, ours);
  const lacking = Object.keys(extensions).find((name) => !offered.includes(name) && isRequired(extensions[name]));
  if (lacking !== undefined) return { lacking, offered };
  return { inForce: offered.filter((name) => Object.hasOwn(extensions, name)) };
}

/**
 * A vendor's own (`domain/name/major`) are between its executor and the caller: declaring one is offering it. The short
 * names are the protocol's, and declaring one does not make the SDK able to do it.
 */
export function offeredBy({ extensions = [] }: Capability, ours: readonly string[]): readonly string[] {
  return [...ours, ...extensions.filter((name) => WITH_EXECUTOR.includes(name) || name.split('/').length === 3)];
}

function isRequired(wish: unknown): boolean {
  return typeof wish === 'object' && wish !== null && 'required' in wish && wish.required === true;
}
