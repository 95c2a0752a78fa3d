import type { ExpectedOutput } from '../schemas/types.ts';
import { isHcpError } from '../shared/errors.ts';
import type { SchemaSandbox } from '../shared/foreign-schema/sandbox.ts';

/** What is wrong with the outputs of a task by what its caller expects of them, if anything (HCP-126, HCP-227). */
export async function expectationFault(
  sandbox: SchemaSandbox,
  { required_fields: required = [], schema }: ExpectedOutput,
  outputs: object,
): Promise<string | undefined> {
  const missing = required.find((field) => !Object.hasOwn(outputs, field));
  if (missing !== undefined) return `/outputs/${missing} is missing, which the caller requires`;
  if (schema === undefined) return undefined;
  try {
    const verdict = await sandbox.validate(schema, outputs);
    return verdict.valid ? undefined : `/outputs${verdict.pointer} ${verdict.message}`;
  } catch (error) {
    if (isHcpError(error)) return `The outputs could not be checked against expected_output.schema: ${error.message}`;
    throw error;
  }
}
