import { randomUUID } from 'node:crypto';
import { Capabilities, type OfferedCapability } from '../../../callee/capabilities.ts';
import { OURS } from '../../../callee/extensions.ts';
import { Slots } from '../../../callee/gate/capacity.ts';
import { type GateParts, type Judgement, judge } from '../../../callee/gate/gate.ts';
import { acceptKnownCallers, type Policy, resolvePolicy } from '../../../callee/gate/policy.ts';
import type { TaskSubmitPayload } from '../../../schemas/types.ts';
import { createSchemaSandbox } from '../../../shared/foreign-schema/sandbox.ts';
import type { Logger } from '../../../shared/logger.ts';
import { openStore } from '../../../shared/store/open-store.ts';
import type { Transport } from '../../../shared/transport/transport.ts';
import { ManualClock } from '../../../testing/manual-clock.ts';
import { recordingLogger } from '../../support/world.ts';

export interface GateRoomOptions {
  readonly policy?: Policy;
  readonly link?: Transport['link'];
}

/** A gate with no callee around it: what it says of a task, and nothing else. */
export class GateRoom implements AsyncDisposable {
  readonly parts: GateParts;
  readonly logger: Logger;
  readonly lines: string[];
  readonly #sandbox = createSchemaSandbox();

  private constructor(store: GateParts['store'], offered: readonly OfferedCapability[], options: GateRoomOptions) {
    const { policy = acceptKnownCallers(['alpha']), link = 'local' } = options;
    ({ logger: this.logger, lines: this.lines } = recordingLogger());
    const capabilities = new Capabilities(OURS);
    for (const capability of offered) capabilities.add(capability);
    this.parts = {
      ...{ store, capabilities, link, logger: this.logger, sandbox: this.#sandbox, calleeId: 'lab' },
      policy: resolvePolicy(policy, link),
      slots: new Slots(store, 'lab'),
      closing: new AbortController().signal,
      clock: new ManualClock(),
      maxDurationMs: 3_600_000,
      gateTimeoutMs: 5000,
    };
  }

  static async open(offered: readonly OfferedCapability[], options: GateRoomOptions = {}): Promise<GateRoom> {
    return new GateRoom(await openStore('memory:'), offered, options);
  }

  judge(task: Partial<TaskSubmitPayload> = {}, userId?: string): Promise<Judgement> {
    const whole = { capability: 'test.task', caller_id: 'alpha', intent: 'Do it', inputs: {}, ...task };
    return judge(this.parts, { callerId: whole.caller_id, userId, task: whole }, randomUUID());
  }

  /** The reason of a rejection, or `accepted`. */
  async verdict(task: Partial<TaskSubmitPayload> = {}, userId?: string): Promise<string> {
    const judgement = await this.judge(task, userId);
    return 'terms' in judgement ? 'accepted' : judgement.rejection.reason_code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sandbox.close();
    await this.parts.store.close();
  }
}
