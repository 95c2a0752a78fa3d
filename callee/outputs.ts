import type { TaskSubmitPayload } from '../schemas/types.ts';
import { isHcpError } from '../shared/errors.ts';
import type { SchemaSandbox } from '../shared/foreign-schema/sandbox.ts';
import type { OfferedCapability } from './capabilities.ts';
import type { TaskResult } from './run.ts';

/** What is wrong with the result of a task, by the caller's expectations and the capability's own promise (HCP-126). */
export async function outputFault(
  sandbox: SchemaSandbox,
  capability: OfferedCapability,
  { expected_output: expected = {} }: TaskSubmitPayload,
  result: TaskResult,
): Promise<string | undefined> {
  const outputs: unknown = result?.outputs;
  if (typeof outputs !== 'object' || outputs === null || Array.isArray(outputs)) {
    return 'The executor must return { outputs: { … } }';
  }
  const missing = expected.required_fields?.find((field) => !Object.hasOwn(outputs, field));
  if (missing !== undefined) return `/outputs/${missing} is missing, which the caller requires`;
  const fault = capability.outputFault(outputs);
  if (fault !== undefined || expected.schema === undefined) return fault;
  try {
    const verdict = await sandbox.validate(expected.schema, outputs);
    return verdict.valid ? undefined : `/outputs${verdict.pointer} ${verdict.message}`;
  } catch (error) {
    if (isHcpError(error)) return `The outputs could not be checked against expected_output.schema: ${error.message}`;
    throw error;
  }
}
