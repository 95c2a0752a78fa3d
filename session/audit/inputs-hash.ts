import { canonicalJson } from '../../shared/canonical-json.ts';
import { sha256 } from '../../shared/sha256.ts';

/** Names the inputs of a task without showing them: the same inputs hash alike, in whatever order their keys come. */
export function inputsHash(task: { readonly inputs: unknown }): string {
  return sha256(canonicalJson(task.inputs));
}
