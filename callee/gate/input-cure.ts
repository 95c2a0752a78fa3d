import type { ErrorObject, ValidateFunction } from 'ajv/dist/2020.js';
import { applyPatch, isSafePointer, type PatchOperation, pointer, valueAt } from '../../shared/json-patch.ts';

/** Each step is one validation: bad inputs cost the callee no more than this. */
const MAX_STEPS = 20;
const INPUTS = pointer(['inputs']);

/** The part of a schema that says which numbers are allowed. */
interface NumberRules {
  readonly type?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
}

/** A number the schema refused: what the caller asked for, and every rule that complained so far. */
interface RefusedNumber {
  readonly wish: number;
  readonly rules: NumberRules[];
}

/**
 * The changes that make inputs valid, with paths below `/inputs`, where the schema alone dictates them; `undefined`
 * where somebody has to think. `validate` must stop at its first error, as ajv does by default.
 */
export function cureInputs(validate: ValidateFunction, inputs: object): readonly PatchOperation[] | undefined {
  const before = { inputs };
  const touched = new Set<string>();
  const refused = new Map<string, RefusedNumber>();
  let after: unknown = before;
  for (let steps = 0; !validate(valueAt(after, INPUTS)); steps++) {
    const [error, ...branches] = validate.errors ?? [];
    // Several errors at once are the branches of an anyOf: which one the caller meant, the schema does not say.
    if (error === undefined || branches.length > 0 || steps === MAX_STEPS) return undefined;
    const change = changeFor(error, validate.schema, after, refused);
    if (change === undefined || !isSafePointer(change.path)) return undefined;
    after = applyPatch(after, [change]);
    touched.add(change.path);
  }
  return difference(touched, before, after);
}

/** The change that answers one error, if there is only one sensible change. */
function changeFor(
  error: ErrorObject,
  schema: unknown,
  inputs: unknown,
  refused: Map<string, RefusedNumber>,
): PatchOperation | undefined {
  const { keyword, params } = error;
  const path = INPUTS + error.instancePath;
  switch (keyword) {
    case 'additionalProperties':
      return { op: 'remove', path: path + pointer([params.additionalProperty]) };
    case 'unevaluatedProperties':
      return { op: 'remove', path: path + pointer([params.unevaluatedProperty]) };
    case 'required': {
      const { required, properties } = schemaNode(error, schema);
      const isThisNode = Array.isArray(required) && required.includes(params.missingProperty);
      const value = isThisNode ? valueAt(properties, pointer([params.missingProperty, 'default'])) : undefined;
      return value === undefined ? undefined : { op: 'add', path: path + pointer([params.missingProperty]), value };
    }
    case 'const':
      return { op: 'replace', path, value: params.allowedValue };
    case 'enum':
      return params.allowedValues.length === 1 ? { op: 'replace', path, value: params.allowedValues[0] } : undefined;
    case 'type':
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
    case 'multipleOf': {
      const found = valueAt(inputs, path);
      const value = typeof found === 'string' ? numberIn(found) : allowedNumber(found, error, schema, refused);
      return value === undefined || value === found ? undefined : { op: 'replace', path, value };
    }
    default:
      return undefined;
  }
}

/** The number a text holds, if JSON would print it just so. */
function numberIn(text: string): number | undefined {
  const number = Number(text);
  return Number.isFinite(number) && JSON.stringify(number) === text ? number : undefined;
}

/** The number closest to the caller's that keeps all the rules known by now. */
function allowedNumber(
  found: unknown,
  error: ErrorObject,
  schema: unknown,
  refused: Map<string, RefusedNumber>,
): number | undefined {
  if (typeof found !== 'number') return undefined;
  // Rules add up and the wish stays the caller's own, so that two rules cannot push the number to and fro.
  const { wish, rules } = refused.get(error.instancePath) ?? { wish: found, rules: [] };
  // A fraction of the caller's own is not rounded; one that we made beside an open bound is.
  if (error.keyword === 'type' && rules.length === 0) return undefined;
  rules.push(numberRules(error, schema));
  refused.set(error.instancePath, { wish, rules });
  return nearestNumber(wish, rules);
}

/** All that the failing part of the schema says about numbers, or at least the rule that failed. */
function numberRules(error: ErrorObject, schema: unknown): NumberRules {
  const { keyword, params } = error;
  const rule = params.limit ?? params.multipleOf ?? params.type;
  const node = schemaNode(error, schema);
  return node[keyword] === rule ? node : { [keyword]: rule };
}

function nearestNumber(wish: number, rules: readonly NumberRules[]): number {
  const lowest = Math.max(...rules.map((rule) => rule.minimum ?? Number.NEGATIVE_INFINITY));
  const above = Math.max(...rules.map((rule) => rule.exclusiveMinimum ?? Number.NEGATIVE_INFINITY));
  const highest = Math.min(...rules.map((rule) => rule.maximum ?? Number.POSITIVE_INFINITY));
  const below = Math.min(...rules.map((rule) => rule.exclusiveMaximum ?? Number.POSITIVE_INFINITY));
  const unit = rules.find((rule) => rule.multipleOf !== undefined)?.multipleOf ?? (rules.some(isWhole) ? 1 : undefined);
  if (unit !== undefined) {
    const first = Math.max(Math.ceil(lowest / unit), Math.floor(above / unit) + 1);
    const last = Math.min(Math.floor(highest / unit), Math.ceil(below / unit) - 1);
    return multiple(clamp(Math.round(wish / unit), first, last), unit);
  }
  const first = Math.max(lowest, neat(above + stepAt(above)));
  const last = Math.min(highest, neat(below - stepAt(below)));
  // Between open bounds closer than a step, the middle is as good as any.
  return first <= last ? clamp(wish, first, last) : neat((Math.max(lowest, above) + Math.min(highest, below)) / 2);
}

function isWhole({ type }: NumberRules): boolean {
  const types = [type].flat();
  return types.includes('integer') && !types.includes('number');
}

function clamp(number: number, first: number, last: number): number {
  return Math.min(Math.max(number, first), last);
}

/** How far to keep from an open bound: a millionth of its size, so that 100 gives 99.9999 and not 99.99999999999999. */
function stepAt(bound: number): number {
  return Number.isFinite(bound) ? 10 ** (Math.floor(Math.log10(Math.abs(bound) || 1)) - 6) : 0;
}

/** In decimals if the division comes out even: 3 × 0.1 is 0.30000000000000004 to the processor. */
function multiple(count: number, unit: number): number {
  const decimal = neat(count * unit);
  return Number.isInteger(decimal / unit) ? decimal : count * unit;
}

function neat(number: number): number {
  return Number.isInteger(number) ? number + 0 : Number(number.toPrecision(15));
}

/** The schema object whose keyword failed; empty when it cannot be told. */
function schemaNode({ schemaPath }: ErrorObject, schema: unknown): Record<string, unknown> {
  // Behind a $ref ajv may start its path at the target: whoever asks must check that the node is the one that failed.
  const [start, ...steps] = schemaPath.split('/').slice(0, -1);
  const node = start === '#' ? valueAt(schema, decodeURIComponent(['', ...steps].join('/'))) : undefined;
  return typeof node === 'object' && node !== null ? { ...node } : {};
}

/** One operation for each place that was touched, unless it lies inside another one. */
function difference(touched: ReadonlySet<string>, before: unknown, after: unknown): PatchOperation[] {
  const paths = [...touched];
  return paths
    .filter((path) => !paths.some((other) => path.startsWith(`${other}/`)))
    .flatMap((path): PatchOperation[] => {
      const value = valueAt(after, path);
      const isNew = valueAt(before, path) === undefined;
      if (value !== undefined) return [{ op: isNew ? 'add' : 'replace', path, value }];
      // A default can be added for one part of the schema and removed again for another.
      return isNew ? [] : [{ op: 'remove', path }];
    });
}
