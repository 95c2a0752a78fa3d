import type { DataClassification, RiskLevel, TaskSubmitPayload } from '../../schemas/types.ts';
import { parseHarnessId } from '../../shared/ids.ts';
import { choiceOption, refuseUnknownOptions } from '../../shared/option-checks.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { dataClass, riskLevel } from './levels.ts';

/** Who asks for what. */
export interface GateRequest {
  /** The caller, as far as the broker knows it; else who it says it is. */
  readonly callerId: string;
  /** The login the broker checked, if any. */
  readonly userId: string | undefined;
  readonly task: TaskSubmitPayload;
}

/** What a caller may ask for. What has lasting effects must be granted by name. */
export interface CallerRights {
  /** Names of capabilities. @default all of them */
  readonly capabilities?: readonly string[];
  /** The highest risk. @default 'R2' */
  readonly riskLimit?: RiskLevel;
  /** The most sensitive data. @default 'T2' */
  readonly dataLimit?: DataClassification;
}

/** Why a task is not done. */
export interface Refusal {
  readonly reasonCode: string;
  readonly message: string;
  /** What to change to be accepted. */
  readonly suggestion?: string;
}

/** The steps of the gate that a check can follow, in their order (HCP-301). */
export const GATE_STEPS = ['identity', 'access', 'capability', 'data', 'inputs', 'risk', 'capacity'] as const;
export type GateStep = (typeof GATE_STEPS)[number];

/** A vendor's own check. Anything but `undefined` refuses the task, and so does what it throws. */
export interface VendorCheck {
  readonly after: GateStep;
  check(request: GateRequest): Refusal | undefined | Promise<Refusal | undefined>;
}

/** Who may have what done. Everything it does not grant is refused. */
export interface Policy {
  /** The callers served, by their ids, or a function that knows them. Anybody else is `unauthorized`. */
  readonly callers:
    | Readonly<Record<string, CallerRights>>
    | ((request: GateRequest) => CallerRights | undefined | Promise<CallerRights | undefined>);
  /** Which caller each login of the broker belongs to. @default the caller of the same name */
  readonly logins?: Readonly<Record<string, string>>;
  /**
   * `login`: the broker must vouch for every sender. `claim`: a login that `logins` does not name proves nothing, and
   * senders are who they say they are. @default 'login', but 'claim' where nothing leaves this machine
   */
  readonly identity?: 'login' | 'claim';
  /** What a task that names no class counts as. @default 'T2' */
  readonly defaultDataClassification?: DataClassification;
  readonly checks?: readonly VendorCheck[];
}

export interface ResolvedPolicy extends Required<Policy> {}

/** Serves the callers named, each within its rights, and nobody else. */
export function acceptKnownCallers(callers: readonly string[] | Readonly<Record<string, CallerRights>>): Policy {
  return { callers: Array.isArray(callers) ? Object.fromEntries(callers.map((id) => [id, {}])) : { ...callers } };
}

const POLICY_NAMES = Object.keys({
  callers: 0,
  logins: 0,
  identity: 0,
  defaultDataClassification: 0,
  checks: 0,
} satisfies Record<keyof Policy, 0>);
const RIGHTS_NAMES = Object.keys({ capabilities: 0, riskLimit: 0, dataLimit: 0 } satisfies Record<
  keyof CallerRights,
  0
>);

/** Fills in the defaults and refuses what cannot work. Throws `TypeError`. Without a policy nobody is served. */
export function resolvePolicy(policy: Policy | undefined, link: Transport['link']): ResolvedPolicy {
  const given: Policy = policy === undefined ? { callers: {} } : policy;
  if (typeof given !== 'object' || given === null || !isDirectory(given.callers)) {
    throw new TypeError('policy must name its callers, as acceptKnownCallers([…]) does');
  }
  refuseUnknownOptions(given, POLICY_NAMES, 'policy.');
  const { callers, logins = {}, checks = [], defaultDataClassification = 'T2' } = given;
  if (typeof callers === 'object') {
    for (const [id, rights] of Object.entries(callers)) {
      if (resolveRights(rights) === undefined) throw new TypeError(`policy.callers.${id} must be an object of rights`);
    }
  }
  for (const [login, callerId] of Object.entries(logins)) parseHarnessId(callerId, `policy.logins.${login}`);
  if (!Array.isArray(checks)) throw new TypeError('policy.checks must be a list of checks');
  for (const vendor of checks) refuseIdle(vendor);
  return {
    callers,
    logins,
    checks,
    identity:
      given.identity === undefined
        ? link === 'local'
          ? 'claim'
          : 'login'
        : choiceOption(given.identity, 'policy.identity', ['login', 'claim']),
    defaultDataClassification: dataClass(defaultDataClassification, 'policy.defaultDataClassification'),
  };
}

function isDirectory(callers: unknown): boolean {
  return typeof callers === 'function' || (typeof callers === 'object' && callers !== null && !Array.isArray(callers));
}

/** A check that is never called would let everything pass. */
function refuseIdle(vendor: Partial<VendorCheck> | null | undefined): void {
  const step = GATE_STEPS.find((known) => known === vendor?.after);
  if (step === undefined) throw new TypeError(`policy.checks[].after must be one of ${GATE_STEPS.join(', ')}`);
  if (typeof vendor?.check !== 'function') throw new TypeError('policy.checks[].check must be a function');
}

/** The caller the broker vouches for, if it does (D-34). */
export function vouchedFor({ logins, identity }: ResolvedPolicy, userId: string | undefined): string | undefined {
  if (userId === undefined) return undefined;
  if (Object.hasOwn(logins, userId)) return logins[userId];
  return identity === 'login' ? userId : undefined;
}

/** What a caller may do; `undefined` for one that is not known. Throws `TypeError` for rights that mean nothing. */
export async function rightsOf(
  { callers }: ResolvedPolicy,
  request: GateRequest,
): Promise<Required<CallerRights> | undefined> {
  if (typeof callers === 'function') return resolveRights(await callers(request));
  return Object.hasOwn(callers, request.callerId) ? resolveRights(callers[request.callerId]) : undefined;
}

/** Anything that is no clear grant is none. */
function resolveRights(rights: CallerRights | undefined): Required<CallerRights> | undefined {
  if (typeof rights !== 'object' || rights === null || Array.isArray(rights)) return undefined;
  refuseUnknownOptions(rights, RIGHTS_NAMES, 'policy.callers.');
  const { capabilities = ['*'], riskLimit = 'R2', dataLimit = 'T2' } = rights;
  if (!Array.isArray(capabilities)) throw new TypeError('policy.callers.capabilities must be a list of names');
  return {
    capabilities,
    riskLimit: riskLevel(riskLimit, 'policy.callers.riskLimit'),
    dataLimit: dataClass(dataLimit, 'policy.callers.dataLimit'),
  };
}

/** Asking what there is, and fetching one's own results, is open to every known caller. */
const FOR_EVERYBODY = ['hcp.describe', 'hcp.artifact'];

export function mayUse({ capabilities }: Required<CallerRights>, name: string): boolean {
  return capabilities.includes('*') || capabilities.includes(name) || FOR_EVERYBODY.includes(name);
}
