import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { RiskLevel, TaskSubmitPayload } from '../../schemas/types.ts';
import type { PatchOperation } from '../../shared/json-patch.ts';
import { highest, riskLevel } from './levels.ts';

/** Something that makes a task riskier. */
export interface RiskFinding {
  readonly level: RiskLevel;
  /** For people: why. */
  readonly because: string;
  /** What would avoid it. */
  readonly suggestion?: string;
  /** What would avoid it, as changes to the payload of the `task_submit`. */
  readonly cure?: readonly PatchOperation[];
}

/** A finding for every task whose payload fits a JSON Schema: `{ properties: { inputs: …, context: … } }`. */
export interface RiskRule extends RiskFinding {
  readonly when: object;
}

/** A vendor's own eyes. What it throws rejects the task. */
export type Assessor = (subject: {
  readonly callerId: string;
  readonly task: TaskSubmitPayload;
}) => readonly RiskFinding[] | Promise<readonly RiskFinding[]>;

/** How risky a task is: the highest of the baseline and of all findings (HCP-304). */
export interface RiskAssessment {
  /** Of a task about which there is nothing to find. */
  readonly baseline: RiskLevel;
  readonly rules?: readonly RiskRule[];
  readonly assess?: Assessor;
}

export interface AssessedRisk {
  readonly level: RiskLevel;
  readonly findings: readonly RiskFinding[];
}

export type CompiledAssessment = (callerId: string, task: TaskSubmitPayload) => Promise<AssessedRisk>;

/** Checks and compiles. Throws `TypeError`. */
export function compileAssessment(assessment: RiskAssessment): CompiledAssessment {
  const { rules = [], assess = () => [] } = assessment;
  const baseline = riskLevel(assessment.baseline, 'risk.baseline');
  if (typeof assess !== 'function') throw new TypeError('risk.assess must be a function');
  const compiled = rules.map((rule, index) => [compile(rule, index), rule] as const);
  return async (callerId, task) => {
    const own = await assess({ callerId, task });
    if (!Array.isArray(own)) throw new TypeError('risk.assess must answer a list of findings');
    const findings = [...compiled.filter(([fits]) => fits(task)).map(([, rule]) => rule), ...own];
    const levels = findings.map(({ level }) => riskLevel(level, 'The level of a finding'));
    return { level: highest([baseline, ...levels]), findings };
  };
}

function compile({ when, level, because }: RiskRule, index: number): ValidateFunction {
  const name = `risk.rules[${index}]`;
  riskLevel(level, `${name}.level`);
  if (typeof because !== 'string') throw new TypeError(`${name}.because must be a text`);
  try {
    return new Ajv2020({ strict: false, ownProperties: true, validateFormats: false }).compile(when);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(`${name}.when cannot be compiled: ${why}`);
  }
}
