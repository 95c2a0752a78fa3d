import { approvalDesk } from '../../callee/approvals/desk.ts';
import {
  type ApprovalDesk,
  acceptKnownCallers,
  type Callee,
  type CalleeOptions,
  type CapabilityOptions,
  type Executor,
  type PendingApproval,
} from '../../callee/index.ts';
import type { Capability, RiskLevel } from '../../schemas/types.ts';
import { AuditChain, readAudit } from '../../session/audit/index.ts';
import { GroupCommitter } from '../../session/group-committer.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { silentLogger } from '../../shared/logger.ts';
import type { Row, Store } from '../../shared/store/store.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import { TASK, type World } from './world.ts';

/** Of any risk, and from R3 on only with a human's approval. */
export const RISKY: Capability = {
  ...TASK,
  safety: { risk_ceiling: 'R5', requires_human_approval: true, involves_physical_resources: false },
};

/** A task is as risky as its inputs say. */
export const AS_TOLD: CapabilityOptions = {
  risk: {
    baseline: 'R1',
    assess: ({ task }) => [{ level: (task.inputs.level ?? 'R3') as RiskLevel, because: 'the inputs say so' }],
  },
};

export interface RiskyOptions {
  readonly executor?: Executor;
  readonly declaration?: Partial<Capability>;
  readonly capability?: CapabilityOptions;
}

/** A started callee whose tasks may need approval. */
export async function serveRisky(
  world: World,
  options: Partial<CalleeOptions> = {},
  { executor = async () => ({ outputs: {} }), declaration = {}, capability = {} }: RiskyOptions = {},
): Promise<Callee> {
  const policy = acceptKnownCallers({ [world.callerId]: { riskLimit: 'R5' } });
  const callee = await world.callee({ policy, ...options });
  callee.capability({ ...RISKY, ...declaration }, executor, { ...AS_TOLD, ...capability });
  await callee.start();
  return callee;
}

/** An executor that keeps which sessions it worked for. */
export function counting(): { readonly runs: string[]; readonly executor: Executor } {
  const runs: string[] = [];
  const executor: Executor = async (_, run) => {
    runs.push(run.sessionId);
    return { outputs: {} };
  };
  return { runs, executor };
}

/** A desk that knows nothing but the store, as one in another process. It tells nobody. */
export function storeDesk({ calleeId }: World, store: Store, clock: Clock = systemClock): ApprovalDesk {
  const audit = new AuditChain(store, { calleeId, clock });
  const committer = new GroupCommitter(store, { clock, logger: silentLogger, audit });
  return approvalDesk({
    ...{ store, calleeId, clock },
    commit: (writes, drafts) => committer.commit({ fence: { broken: false }, entries: [], writes, audit: drafts }),
    onDecided: () => {},
  });
}

const WAIT_MS = 20_000;

/** What waits at a desk, once there is so much. */
export async function waitingAt(desk: ApprovalDesk, count = 1): Promise<readonly PendingApproval[]> {
  return until(
    `${count} tasks to wait for approval`,
    () => desk.list(),
    (pending) => pending.length >= count,
  );
}

/** The only one. */
export async function waitingOne(desk: ApprovalDesk): Promise<PendingApproval> {
  const [pending, ...others] = await waitingAt(desk);
  if (pending === undefined || others.length > 0) throw new Error(`${others.length + 1} tasks wait`);
  return pending;
}

/** What is stored of an approval, once it is as it should be. */
export async function approvalRow(
  { store }: World,
  sessionId: string,
  isReady: (row: Row) => boolean = () => true,
): Promise<Row> {
  const row = await until(
    `the approval of ${sessionId} to be stored so`,
    () => store.get('approvals', [sessionId]),
    (found) => found !== undefined && isReady(found),
  );
  return row as Row; // just looked
}

/** The details of what is on record about a session, of one kind. */
export async function recorded({ store, calleeId }: World, sessionId: string, kind: string) {
  const details: Record<string, unknown>[] = [];
  for await (const record of readAudit(store, calleeId, sessionId)) {
    if (record.kind === kind) details.push(JSON.parse(record.body).details);
  }
  return details;
}

/** Reads again and again until it is so. */
export function until<T>(what: string, read: () => Promise<T>, isReady: (value: T) => boolean): Promise<T> {
  const poll = async (): Promise<T> => {
    for (;;) {
      const value = await read();
      if (isReady(value)) return value;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return within(WAIT_MS, what, poll());
}

/** The same store, read in another way. */
export function withGet(store: Store, get: Store['get']): Store {
  return new Proxy(store, {
    get(target, name) {
      const value = name === 'get' ? get : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
