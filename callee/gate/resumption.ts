import type { DataClassification, TaskSubmitPayload } from '../../schemas/types.ts';
import { type Checkpoint, readCheckpoints } from '../../session/checkpoints.ts';
import { isTerminal } from '../../session/lifecycle.ts';
import { recordOf } from '../../session/record.ts';
import { isUuidV4 } from '../../shared/ids.ts';
import type { Logger } from '../../shared/logger.ts';
import type { Store } from '../../shared/store/store.ts';

export interface ResumptionParts {
  readonly store: Store;
  readonly logger: Logger;
  readonly calleeId: string;
}

/**
 * The checkpoint a task wants to continue from (`resume/1`): one of an ended session of the same caller and capability,
 * with data of the same class or a lower one.
 * Whatever does not fit is answered alike, so that nobody can find out about the sessions of others.
 */
export async function checkpointToResume(
  { store, logger, calleeId }: ResumptionParts,
  {
    callerId,
    task,
    dataClassification,
  }: { callerId: string; task: TaskSubmitPayload; dataClassification: DataClassification },
): Promise<Checkpoint | undefined> {
  const { session_id: sessionId, checkpoint_id: checkpointId } = (task.extensions?.['resume/1'] ?? {}) as {
    session_id?: unknown;
    checkpoint_id?: unknown;
  };
  if (!isUuidV4(sessionId) || typeof checkpointId !== 'string') return undefined;
  const row = await store.get('sessions', [sessionId.toLowerCase()]);
  if (row === undefined) return undefined;
  const record = recordOf(row);
  const before = JSON.parse(record.request).payload as TaskSubmitPayload; // parsed and checked when it came
  const isOurs = record.calleeId === calleeId && record.callerId === callerId;
  if (!isOurs || !isTerminal(record.state) || before.capability !== task.capability) return undefined;
  // Data does not become less sensitive by being carried over.
  if ((record.dataClassification ?? 'T1') > dataClassification) return undefined;
  const checkpoints = await readCheckpoints(store, record.sessionId, logger);
  return checkpoints.find((checkpoint) => checkpoint.checkpointId === checkpointId && checkpoint.resumable);
}
