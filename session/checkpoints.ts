import { HcpError } from '../shared/errors.ts';
import { newUlid } from '../shared/ids.ts';
import type { Logger } from '../shared/logger.ts';
import { sha256 } from '../shared/sha256.ts';
import type { Row, Store, Write } from '../shared/store/store.ts';

/** What an executor stored to continue from. */
export interface Checkpoint {
  readonly checkpointId: string;
  readonly sequence: number;
  readonly description: string;
  readonly resumable: boolean;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly data: unknown;
}

/** A checkpoint before it has its sequence. `text` is its data as JSON. */
export interface CheckpointDraft {
  readonly checkpointId: string;
  readonly description: string;
  readonly resumable: boolean;
  readonly createdAt: string;
  readonly text: string;
}

/** Throws `TypeError` for what cannot be stored as text or JSON, `checkpoint_too_large` for more than `maxBytes`. */
export function draftCheckpoint(
  data: unknown,
  { description, resumable, now, maxBytes }: { description: string; resumable: boolean; now: number; maxBytes: number },
): CheckpointDraft {
  // Refused here, not by the store: by then it would have cost a sequence.
  if (typeof description === 'string' && !description.isWellFormed())
    throw new TypeError('The description of a checkpoint must be Unicode');
  const text = JSON.stringify(data);
  if (text === undefined) throw new TypeError('The data of a checkpoint must be JSON');
  const bytes = Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new HcpError('checkpoint_too_large', `The checkpoint has ${bytes} bytes, allowed are ${maxBytes}`);
  }
  const createdAt = new Date(now).toISOString();
  return { checkpointId: `ckpt-${newUlid(now)}`, description, resumable, createdAt, text };
}

export function insertCheckpoint(sessionId: string, sequence: number, draft: CheckpointDraft): Write {
  return {
    insert: 'checkpoints',
    row: {
      session_id: sessionId,
      checkpoint_id: draft.checkpointId,
      sequence,
      description: draft.description,
      resumable: draft.resumable ? 1 : 0,
      created_at: draft.createdAt,
      data: draft.text,
      data_sha256: sha256(draft.text),
    },
  };
}

/** Where the work of an earlier session goes on: stored anew, before anything the session itself says. */
export function copyCheckpoint(sessionId: string, checkpoint: Checkpoint): Write {
  return insertCheckpoint(sessionId, 0, { ...checkpoint, text: JSON.stringify(checkpoint.data) });
}

export function deleteCheckpoint(sessionId: string, checkpointId: string): Write {
  return { delete: 'checkpoints', key: [sessionId, checkpointId] };
}

const PAGE = 100;

/** A session's checkpoints, newest first. A damaged one is told of and left out: it must never be resumed from. */
export async function readCheckpoints(store: Store, sessionId: string, logger: Logger): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  let after: Row | undefined;
  for (;;) {
    const range = { where: [sessionId], order: 'descending', limit: PAGE, ...(after && { after }) } as const;
    const rows = await store.scan('checkpoints', 'key', range);
    for (const row of rows) {
      const checkpoint = readCheckpoint(row);
      if (checkpoint) found.push(checkpoint);
      else
        logger.error({ session_id: sessionId, checkpoint_id: row.checkpoint_id }, 'A checkpoint is damaged: not used');
    }
    // By sequence, not by id: a clock that was set back between two lives would order the ids wrongly.
    if (rows.length < PAGE) return found.sort((a, b) => b.sequence - a.sequence);
    after = rows.at(-1);
  }
}

function readCheckpoint(row: Row): Checkpoint | undefined {
  const text = String(row.data);
  if (sha256(text) !== row.data_sha256) return undefined;
  return {
    checkpointId: String(row.checkpoint_id),
    sequence: Number(row.sequence),
    description: String(row.description),
    resumable: row.resumable === 1,
    createdAt: String(row.created_at),
    data: JSON.parse(text),
  };
}
