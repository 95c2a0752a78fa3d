/** Compiles and runs foreign schemas. Lives in a thread of its own, so that it can be stopped at any instruction. */
import { parentPort } from 'node:worker_threads';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Verdict } from './sandbox.ts';

export interface Job {
  readonly schemaText: string;
  /** JSON text of the value; absent to compile only. */
  readonly valueText: string | undefined;
}

const KEPT = 100;
const compiled = new Map<string, ValidateFunction>();

function validatorOf(schemaText: string): ValidateFunction {
  let validate = compiled.get(schemaText);
  if (validate === undefined) {
    // A fresh instance each: what one schema defines must not reach another.
    const ajv = new Ajv2020({ strict: false, validateFormats: false, ownProperties: true, logger: false });
    validate = ajv.compile(JSON.parse(schemaText));
    const oldest = compiled.size >= KEPT ? compiled.keys().next() : undefined;
    if (oldest?.value !== undefined) compiled.delete(oldest.value);
    compiled.set(schemaText, validate);
  }
  return validate;
}

function run({ schemaText, valueText }: Job): Verdict | { readonly unusable: string } {
  let validate: ValidateFunction;
  try {
    validate = validatorOf(schemaText);
  } catch (error) {
    return { unusable: (error instanceof Error ? error.message : String(error)).slice(0, 200) };
  }
  if (valueText === undefined || validate(JSON.parse(valueText)) === true) return { valid: true };
  const error = validate.errors?.[0];
  const missing = error?.keyword === 'required' ? `/${error.params.missingProperty}` : '';
  return { valid: false, pointer: (error?.instancePath ?? '') + missing, message: error?.message ?? 'does not fit' };
}

parentPort?.on('message', (job: Job) => parentPort?.postMessage(run(job)));
parentPort?.postMessage('ready');
