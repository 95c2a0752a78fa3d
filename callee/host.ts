import type { TaskSubmitPayload } from '../schemas/types.ts';
import type { AuditDraft } from '../session/audit/index.ts';
import type { GroupCommitter } from '../session/group-committer.ts';
import type { KeyRing } from '../session/keys/key-ring.ts';
import type { SessionRecord } from '../session/record.ts';
import type { Clock } from '../shared/clock.ts';
import type { Logger } from '../shared/logger.ts';
import type { Store } from '../shared/store/store.ts';
import type { Capabilities, OfferedCapability } from './capabilities.ts';
import type { CalleeSettings } from './options.ts';
import type { EventOutbox } from './outbox.ts';
import type { TaskResult } from './run.ts';
import type { LiveSession } from './session.ts';
import type { CalleeTelemetry } from './telemetry.ts';

/** What a session needs of the callee it runs in. */
export interface Host {
  readonly settings: CalleeSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly store: Store;
  readonly capabilities: Capabilities;
  readonly committer: GroupCommitter;
  readonly outbox: EventOutbox;
  readonly telemetry: CalleeTelemetry;
  /** What the callee signs with. Not before it is started. */
  readonly keys: KeyRing;
  /** T2 and above: who looks at the data of a task is logged (HCP-313). */
  logAccess(record: SessionRecord): void;
  /** Puts something on record that goes with no step of a session. */
  note(draft: AuditDraft): Promise<void>;
  /** What is wrong with a result, if anything. */
  outputFault(capability: OfferedCapability, task: TaskSubmitPayload, result: TaskResult): Promise<string | undefined>;
  /** The session has ended: it takes no more commands. */
  forget(session: LiveSession): void;
  /** The session cannot go on in this object; if it is still ours by the store, it is taken up again. */
  lost(session: LiveSession): void;
}
