import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import semver from 'semver';
import type { Capability, TaskSubmitPayload } from '../schemas/types.ts';
import { parseDuration } from '../shared/durations.ts';
import { schemaFault } from '../shared/messages/validators.ts';
import type { Cleanup, Executor } from './run.ts';

/** A capability a vendor offers, ready to be used. */
export interface OfferedCapability {
  readonly declaration: Capability;
  readonly executor: Executor;
  readonly cleanup: Cleanup | undefined;
  readonly maxDurationMs: number;
  /** The first thing wrong with the inputs, if any. Never holds a value. */
  inputFault(inputs: unknown): string | undefined;
  outputFault(outputs: unknown): string | undefined;
}

/** Checks a declaration and compiles its schemas (HCP-315). Throws `TypeError`, one sentence. */
export function offer(declaration: Capability, executor: Executor, cleanup?: Cleanup): OfferedCapability {
  const fault = schemaFault('capability', declaration);
  if (fault) throw new TypeError(`The capability declaration is invalid: ${fault.message}`);
  const { name, version, constraints } = declaration;
  if (semver.valid(version) === null) throw new TypeError(`Capability ${name} has no semantic version, but ${version}`);
  if (typeof executor !== 'function') throw new TypeError(`Capability ${name} has no executor function`);
  if (cleanup !== undefined && typeof cleanup !== 'function') {
    throw new TypeError(`The cleanup of capability ${name} is no function`);
  }
  return {
    declaration,
    executor,
    cleanup,
    maxDurationMs: parseDuration(constraints?.max_duration ?? '') ?? Number.POSITIVE_INFINITY,
    inputFault: faultFinder(compile(declaration, 'input_schema'), '/payload/inputs'),
    outputFault: faultFinder(compile(declaration, 'output_schema'), '/outputs'),
  };
}

function compile(declaration: Capability, which: 'input_schema' | 'output_schema'): ValidateFunction {
  try {
    // An instance of its own: two capabilities may use the same $id.
    return new Ajv2020({ strict: false, ownProperties: true, validateFormats: false }).compile(declaration[which]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(`The ${which} of capability ${declaration.name} cannot be compiled: ${why}`);
  }
}

function faultFinder(validate: ValidateFunction, at: string): (value: unknown) => string | undefined {
  return (value) => {
    if (validate(value)) return undefined;
    const [error] = validate.errors as ErrorObject[];
    return `${at}${error?.instancePath ?? ''} ${error?.message ?? 'is invalid'}`;
  };
}

/** The capabilities of one callee, by name and version. */
export class Capabilities {
  readonly #offered = new Map<string, Map<string, OfferedCapability>>();

  add(capability: OfferedCapability): void {
    const { name, version } = capability.declaration;
    const versions = this.#offered.get(name) ?? new Map<string, OfferedCapability>();
    if (versions.has(version)) throw new TypeError(`Capability ${name} ${version} is declared twice`);
    this.#offered.set(name, versions.set(version, capability));
  }

  get isEmpty(): boolean {
    return this.#offered.size === 0;
  }

  get names(): string[] {
    return [...this.#offered.keys()];
  }

  versions(name: string): string[] {
    return [...(this.#offered.get(name)?.keys() ?? [])];
  }

  get(name: string, version: string | undefined): OfferedCapability | undefined {
    return version === undefined ? undefined : this.#offered.get(name)?.get(version);
  }

  /** The newest version in the range the task asks for. */
  match({ capability, capability_version: range = '*' }: TaskSubmitPayload): OfferedCapability | undefined {
    const version = semver.maxSatisfying(this.versions(capability), range, { includePrerelease: range === '*' });
    return this.get(capability, version ?? undefined);
  }
}

export function isVersionRange(range: string): boolean {
  return semver.validRange(range) !== null;
}
