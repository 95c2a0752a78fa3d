import { readCheckpoints } from '../session/checkpoints.ts';
import { isTerminal } from '../session/lifecycle.ts';
import { readTail } from '../session/log.ts';
import { recordOf, type SessionRecord } from '../session/record.ts';
import { isHcpError } from '../shared/errors.ts';
import type { Logger } from '../shared/logger.ts';
import type { Row } from '../shared/store/store.ts';
import type { Admissions } from './admissions.ts';
import type { Host } from './host.ts';
import { LiveSession } from './session.ts';

export interface RecoveryParts {
  readonly host: Host;
  readonly live: Map<string, LiveSession>;
  readonly admissions: Admissions;
  readonly instanceId: () => string;
}

const PAGE = 200;
const AT_ONCE = 64;

/** Takes every session of a gone owner and continues it. Resolves when all of them are ours, or somebody else's. */
export async function takeSessionsOf(parts: RecoveryParts, owner: string): Promise<number> {
  const { host } = parts;
  let taken = 0;
  let after: Row | undefined;
  for (;;) {
    const where = [host.settings.calleeId, 1, owner];
    const rows = await host.store.scan('sessions', 'by_owner', { where, limit: PAGE, ...(after && { after }) });
    // Under our own name lie those that nobody runs beside those that run, and those that are being published.
    const records = rows
      .flatMap((row) => readable(row, host.logger))
      .filter(({ sessionId }) => !parts.live.has(sessionId) && !host.outbox.has(sessionId));
    for (let start = 0; start < records.length; start += AT_ONCE) {
      const claims = records.slice(start, start + AT_ONCE).map((record) => takeOver(parts, record));
      taken += (await Promise.all(claims)).filter(Boolean).length;
    }
    if (rows.length < PAGE) return taken;
    after = rows.at(-1);
  }
}

async function takeOver(parts: RecoveryParts, record: SessionRecord): Promise<boolean> {
  const { host, live, admissions } = parts;
  const { sessionId, owner, epoch, state, trace } = record;
  const tail = await readTail(host.store, sessionId);
  const checkpoints = isTerminal(state) ? [] : await readCheckpoints(host.store, sessionId, host.logger);
  host.telemetry.began(record, JSON.parse(trace));
  const session = new LiveSession(host, { ...record, owner: parts.instanceId(), epoch: epoch + 1 }, tail, checkpoints);
  live.set(sessionId, session);
  try {
    // First in the outbox: what an earlier life said comes before what we say.
    await session.republish();
    const next = await session.takeOver({ owner, epoch });
    host.logger.info(
      { session_id: sessionId, caller_id: record.callerId, from: owner, state, next },
      'Session taken over',
    );
    if (next === 'judge') await admissions.judge(session);
    else if (next === 'violated') endViolated(session, host.logger);
    else if (next === 'clean') session.cleanUpAgain();
    else if (next === 'over') host.forget(session);
    else if (session.capability) session.start(session.capability);
    return true;
  } catch (error) {
    if (!isHcpError(error, 'session_taken_over')) throw error;
    return false; // another instance was faster
  }
}

/** Not awaited: a procedure that takes its time must not keep the others from being recovered. */
function endViolated(session: LiveSession, logger: Logger): void {
  const { violation, sessionId } = session.record;
  if (violation === undefined) return;
  session.safety.violate(violation).catch((error: unknown) => {
    logger.error({ err: error, session_id: sessionId }, 'A session that broke a limit could not be ended');
  });
}

/** A row that somebody damaged must not keep the others from being continued. */
function readable(row: Row, logger: Logger): SessionRecord[] {
  try {
    return [recordOf(row)];
  } catch (error) {
    logger.error({ err: error, session_id: row.session_id }, 'A session cannot be read: left alone');
    return [];
  }
}
