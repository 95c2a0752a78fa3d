import { readCheckpoints } from '../../session/checkpoints.ts';
import { sessionOf } from '../arguments.ts';
import type { Command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { jsonLine } from '../output.ts';
import { checkpointJson, checkpointLines } from '../session-story.ts';
import { findSession, storeToRead } from '../stored.ts';

export const checkpointsCommand: Command = {
  name: 'checkpoints',
  summary: 'where a session can continue, the newest first; their data with --json',
  arguments: '<session>',
  arity: [1, 1],
  examples: ['hcp checkpoints 0b7f6a52-6d0a-4a38-9f6e-3c8f0a5a1f11 --json'],
  async run(call) {
    const { json, io, workplace } = call;
    const store = await storeToRead(workplace);
    const record = await findSession(store, workplace.calleeId, sessionOf(call));
    const damaged: string[] = [];
    const note = (fields: object) => void damaged.push(String(Object(fields).checkpoint_id));
    const logger = { debug() {}, info() {}, warn() {}, error: note };
    const checkpoints = await readCheckpoints(store, record.sessionId, logger);
    if (json) io.out(jsonLine(checkpoints.map(checkpointJson)));
    else if (checkpoints.length === 0) io.out('The session has no checkpoint');
    else for (const line of checkpointLines(checkpoints)) io.out(line);
    for (const id of damaged) io.err(`hcp: Checkpoint ${id} is damaged and will not be used`);
    return damaged.length === 0 ? EXIT.ok : EXIT.failed;
  },
};
