import { AuditChain } from '../../session/audit/index.ts';
import { GroupCommitter } from '../../session/group-committer.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { parseHarnessId } from '../../shared/ids.ts';
import { type Logger, silentLogger } from '../../shared/logger.ts';
import type { Store } from '../../shared/store/store.ts';
import { instanceRoute } from '../../shared/transport/topology.ts';
import type { Transport } from '../../shared/transport/transport.ts';
import { type ApprovalDesk, approvalDesk } from './desk.ts';

export interface ApprovalDeskOptions {
  /** The callee whose tasks are decided about. */
  readonly calleeId: string;
  /** The store of that callee. */
  readonly store: Store;
  /** Tells the callee at once; without it the callee looks by itself, every few seconds. */
  readonly transport?: Transport;
  /** @default the machine's clock */
  readonly clock?: Clock;
  /** @default logs nothing */
  readonly logger?: Logger;
}

/** An approval desk in a process of its own: a command line, a web page. Does no I/O by itself. */
export function openApprovalDesk(options: ApprovalDeskOptions): ApprovalDesk {
  const { store, transport, clock = systemClock, logger = silentLogger } = options;
  const calleeId = parseHarnessId(options.calleeId, 'calleeId');
  const audit = new AuditChain(store, { calleeId, clock });
  const committer = new GroupCommitter(store, { clock, logger, audit });

  async function ring(sessionId: string): Promise<void> {
    const owner = (await store.get('sessions', [sessionId]))?.owner;
    if (transport === undefined || typeof owner !== 'string' || owner === '') return;
    const route = instanceRoute(calleeId, owner);
    await transport.publish({ route, body: new Uint8Array(), properties: { appId: calleeId } });
  }

  return approvalDesk({
    ...{ store, calleeId, clock },
    commit: (writes, notes) => committer.commit({ fence: { broken: false }, entries: [], writes, audit: notes }),
    // Waited for: a command line would be gone before the callee has been told.
    onDecided: (sessionId) =>
      ring(sessionId).catch((error: unknown) => {
        logger.warn({ err: error, session_id: sessionId }, 'The callee could not be told: it will look by itself');
      }),
  });
}
