import type { Callee, CalleeOptions, CapabilityOptions, Executor } from '../../callee/index.ts';
import { readAudit } from '../../callee/index.ts';
import type { Capability, SafetyEnvelope } from '../../schemas/types.ts';
import type { Store } from '../../shared/store/store.ts';
import { TASK, type World } from './world.ts';

/** A hard limit, a soft one, an action that is prohibited, and what to do when one is broken. */
export const ENVELOPE: SafetyEnvelope = {
  parameters: {
    temperature: { min: 0, max: 1000, unit: 'celsius' },
    pressure: { max: 5, unit: 'bar', hard_limit: false },
  },
  prohibited_actions: ['open_door'],
  emergency_procedures: { temperature: 'cool', default: 'shut_down' },
};

export type FurnaceOptions = Partial<CalleeOptions> &
  CapabilityOptions & { readonly declaration?: Partial<Capability> };

/** A started callee whose capability has limits. Its procedures do nothing unless they are given. */
export async function serveFurnace(world: World, executor: Executor, options: FurnaceOptions = {}): Promise<Callee> {
  const { cleanup, risk, envelope = ENVELOPE, procedures, declaration, ...calleeOptions } = options;
  const callee = await world.callee(calleeOptions);
  callee.capability({ ...TASK, ...declaration }, executor, {
    envelope,
    procedures: { cool: () => {}, shut_down: () => {}, ...procedures },
    ...(cleanup && { cleanup }),
    ...(risk && { risk }),
  });
  await callee.start();
  return callee;
}

/** One record about a session: its kind and what it says. */
export interface Audited {
  readonly kind: string;
  readonly at: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** What is on record about a session, in order of time. */
export async function audited(store: Store, calleeId: string, sessionId: string): Promise<Audited[]> {
  const records: Audited[] = [];
  for await (const { body } of readAudit(store, calleeId, sessionId)) records.push(JSON.parse(body));
  return records;
}

export async function auditKinds({ store, calleeId }: World, sessionId: string): Promise<string[]> {
  return (await audited(store, calleeId, sessionId)).map(({ kind }) => kind);
}
