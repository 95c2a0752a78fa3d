import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import semver from 'semver';
import type { Capability, SafetyEnvelope, TaskSubmitPayload } from '../schemas/types.ts';
import { parseDuration } from '../shared/durations.ts';
import { schemaFault } from '../shared/messages/validators.ts';
import { refuseUnknownOptions } from '../shared/option-checks.ts';
import { type CompiledAssessment, compileAssessment, type RiskAssessment } from './gate/risk.ts';
import type { Cleanup, Executor, Procedure } from './run.ts';

/** What a vendor says about a capability beside its declaration. */
export interface CapabilityOptions {
  readonly cleanup?: Cleanup;
  /** How risky a task is. @default every task is as risky as the declared ceiling */
  readonly risk?: RiskAssessment;
  /** The limits `run.guard` enforces, for all tasks or for each. @default none */
  readonly envelope?: SafetyEnvelope | ((task: TaskSubmitPayload) => SafetyEnvelope | Promise<SafetyEnvelope>);
  /** The emergency procedures that the envelope names. */
  readonly procedures?: Readonly<Record<string, Procedure>>;
}

/** A capability a vendor offers, ready to be used. */
export interface OfferedCapability {
  readonly declaration: Capability;
  readonly executor: Executor;
  readonly cleanup: Cleanup | undefined;
  readonly procedures: Readonly<Record<string, Procedure>>;
  readonly maxDurationMs: number;
  readonly inputSchema: ValidateFunction;
  readonly assess: CompiledAssessment;
  /** Rejects with `TypeError` when a vendor's function gives an envelope that cannot be enforced. */
  envelope(task: TaskSubmitPayload): Promise<SafetyEnvelope>;
  /** The first thing wrong with the inputs, if any. Never holds a value. */
  inputFault(inputs: unknown): string | undefined;
  outputFault(outputs: unknown): string | undefined;
}

const OPTION_NAMES = Object.keys({ cleanup: 0, risk: 0, envelope: 0, procedures: 0 } satisfies Record<
  keyof CapabilityOptions,
  0
>);

/** Checks a declaration and compiles its schemas and rules (HCP-315). Throws `TypeError`, one sentence. */
export function offer(declaration: Capability, executor: Executor, options: CapabilityOptions = {}): OfferedCapability {
  const fault = schemaFault('capability', declaration);
  if (fault) throw new TypeError(`The capability declaration is invalid: ${fault.message}`);
  const { name, version, constraints, safety } = declaration;
  if (semver.valid(version) === null) throw new TypeError(`Capability ${name} has no semantic version, but ${version}`);
  if (typeof executor !== 'function') throw new TypeError(`Capability ${name} has no executor function`);
  refuseUnknownOptions(options, OPTION_NAMES);
  const { cleanup, risk = { baseline: safety.risk_ceiling }, envelope = {}, procedures = {} } = options;
  if (cleanup !== undefined && typeof cleanup !== 'function') {
    throw new TypeError(`The cleanup of capability ${name} is no function`);
  }
  const assess = compileAssessment(risk);
  if (risk.baseline > safety.risk_ceiling) {
    throw new TypeError(`The baseline risk of capability ${name} is above its ceiling: it could never run`);
  }
  if (typeof envelope !== 'function') refuseUnenforceable(envelope, procedures);
  const inputSchema = compile(declaration, 'input_schema');
  return {
    declaration,
    executor,
    cleanup,
    procedures,
    maxDurationMs: parseDuration(constraints?.max_duration ?? '') ?? Number.POSITIVE_INFINITY,
    inputSchema,
    assess,
    async envelope(task) {
      if (typeof envelope !== 'function') return envelope;
      const given = await envelope(task);
      refuseUnenforceable(given, procedures);
      return given;
    },
    inputFault: faultFinder(inputSchema, '/payload/inputs'),
    outputFault: faultFinder(compile(declaration, 'output_schema'), '/outputs'),
  };
}

/** An envelope that cannot be kept must not be promised. */
function refuseUnenforceable(envelope: SafetyEnvelope, procedures: Readonly<Record<string, Procedure>>): void {
  const fault = schemaFault('safety_envelope', envelope);
  if (fault) throw new TypeError(`The safety envelope is invalid: ${fault.message}`);
  for (const name of Object.values(envelope.emergency_procedures ?? {})) {
    const isThere = Object.hasOwn(procedures, name) && typeof procedures[name] === 'function';
    if (!isThere) throw new TypeError(`The safety envelope names the procedure ${name}, which is not in procedures`);
  }
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
  /** Extensions that the SDK offers with every one of them. */
  readonly extensions: readonly string[];
  readonly #offered = new Map<string, Map<string, OfferedCapability>>();

  constructor(extensions: readonly string[]) {
    this.extensions = extensions;
  }

  add(capability: OfferedCapability): void {
    const { name, version } = capability.declaration;
    const versions = this.#offered.get(name) ?? new Map<string, OfferedCapability>();
    if (versions.has(version)) throw new TypeError(`Capability ${name} ${version} is declared twice`);
    this.#offered.set(name, versions.set(version, capability));
  }

  get isEmpty(): boolean {
    return this.#offered.size === 0;
  }

  get all(): readonly OfferedCapability[] {
    return [...this.#offered.values()].flatMap((versions) => [...versions.values()]);
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

  newest(name: string): string | undefined {
    return semver.maxSatisfying(this.versions(name), '*', { includePrerelease: true }) ?? undefined;
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
