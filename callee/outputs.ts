import type { TaskSubmitPayload } from '../schemas/types.ts';
import { expectationFault } from '../session/expected-output.ts';
import type { SchemaSandbox } from '../shared/foreign-schema/sandbox.ts';
import type { OfferedCapability } from './capabilities.ts';
import type { TaskResult } from './run.ts';

/** What is wrong with the result of a task, by the capability's own promise and the caller's expectations (HCP-126). */
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
  const artifacts: unknown = result.artifacts;
  if (artifacts !== undefined && !Array.isArray(artifacts)) return 'The artifacts of a result must be a list';
  return capability.outputFault(outputs) ?? (await expectationFault(sandbox, expected, outputs));
}
