import { HcpError } from '../errors.ts';
import { pointerStep } from '../messages/fault.ts';
import { inspectJson } from '../messages/json-value.ts';

export interface SchemaBounds {
  /** Size of the schema's JSON text. @default 64 KiB */
  readonly bytes: number;
  /** @default 32 */
  readonly depth: number;
}

/** Keywords whose value maps free names to schemas: the names themselves are no keywords. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
/** Keywords whose value is data, whatever it looks like. */
const DATA = new Set(['const', 'enum', 'default', 'examples']);
/**
 * `$async` makes a validator answer with a promise, which is truthy: a bypass. `$id` and anchors let one schema shadow
 * another or turn a local reference into a remote one.
 */
const REFUSED = new Set([
  '$async',
  '$id',
  'id',
  '$anchor',
  '$dynamicAnchor',
  '$dynamicRef',
  '$recursiveRef',
  '$vocabulary',
]);
const DIALECT = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/** The JSON text of a foreign schema, if it keeps the bounds (HCP-311). Throws `schema_refused`, saying where and why. */
export function boundedSchemaText(schema: unknown, bounds: SchemaBounds): string {
  const { fault } = inspectJson(schema, {
    bodyBytes: bounds.bytes,
    depth: bounds.depth,
    keys: bounds.bytes,
    textBytes: bounds.bytes,
  });
  if (fault) throw refused(fault.message);
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) throw refused('It is not an object');
  checkKeywords(schema, '');
  const text = JSON.stringify(schema);
  const size = Buffer.byteLength(text);
  if (size > bounds.bytes) throw refused(`It has ${size} bytes, allowed are ${bounds.bytes}`);
  return text;
}

function checkKeywords(node: unknown, pointer: string): void {
  if (Array.isArray(node)) {
    node.forEach((item, i) => {
      checkKeywords(item, pointer + pointerStep(i));
    });
    return;
  }
  if (typeof node !== 'object' || node === null) return;
  for (const [keyword, value] of Object.entries(node)) {
    const at = pointer + pointerStep(keyword);
    if (REFUSED.has(keyword)) throw refused(`${at} is not allowed in a schema from outside`);
    if (keyword === '$ref' && !(typeof value === 'string' && value.startsWith('#'))) {
      throw refused(`${at} may only point into the schema itself, as "#/…"`);
    }
    if (keyword === '$schema' && !(typeof value === 'string' && DIALECT.test(value))) {
      throw refused(`${at} must be JSON Schema 2020-12, or be left out`);
    }
    if (DATA.has(keyword)) continue;
    if (MAPS.has(keyword) && typeof value === 'object' && value !== null) {
      for (const [name, part] of Object.entries(value)) checkKeywords(part, at + pointerStep(name));
    } else checkKeywords(value, at);
  }
}

function refused(why: string): HcpError {
  return new HcpError('schema_refused', `The schema is refused: ${why}`);
}
