import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CalleeOptions, CapabilityOptions, Executor, Policy } from '../callee/index.ts';
import type { Capability } from '../schemas/types.ts';
import { UsageError } from './usage-error.ts';

/**
 * What a module gives `hcp callee run`, as its default export or as exports of these names:
 *
 * ```ts
 * export const capabilities = [{ declaration, executor }];
 * export const policy = acceptKnownCallers(['alpha']);
 * ```
 */
export interface CalleeModule {
  readonly capabilities: readonly {
    readonly declaration: Capability;
    readonly executor: Executor;
    readonly options?: CapabilityOptions;
  }[];
  /** Who may have what done. @default nobody, nothing */
  readonly policy?: Policy;
  /** Whatever else can be said to `createCallee`; who it is and where it works is said on the command line. */
  readonly options?: Omit<CalleeOptions, 'calleeId' | 'transport' | 'store' | 'policy'>;
}

/** Imports a callee module by its path. Throws `UsageError`, one sentence, for one that is none. */
export async function loadCalleeModule(path: string): Promise<CalleeModule> {
  const exports = await importModule(path);
  const given = exports.default ?? exports;
  if (!isObject(given) || !Array.isArray(given.capabilities)) {
    throw new UsageError(
      `${path} must export capabilities, a list of { declaration, executor }, or a default with them`,
    );
  }
  for (const [index, capability] of given.capabilities.entries()) {
    if (isObject(capability) && isObject(capability.declaration) && typeof capability.executor === 'function') continue;
    throw new UsageError(`${path}: capabilities[${index}] must be { declaration, executor, options? }`);
  }
  for (const name of ['policy', 'options']) {
    if (given[name] !== undefined && !isObject(given[name])) throw new UsageError(`${path}: ${name} must be an object`);
  }
  // What is inside is checked by createCallee and capability().
  return given as unknown as CalleeModule;
}

async function importModule(path: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(resolve(path)).href);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${path} cannot be imported: ${why}`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
