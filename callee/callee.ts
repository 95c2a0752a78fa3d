import type { Capability } from '../schemas/types.ts';
import { AuditChain, exportEvidence } from '../session/audit/index.ts';
import { GroupCommitter } from '../session/group-committer.ts';
import type { KeyRing } from '../session/keys/key-ring.ts';
import { openStoredKeyRing } from '../session/keys/stored-keys.ts';
import { delay } from '../shared/clock.ts';
import { HcpError, isHcpError } from '../shared/errors.ts';
import { createSchemaSandbox, type SchemaSandbox } from '../shared/foreign-schema/sandbox.ts';
import { Periodic } from '../shared/periodic.ts';
import { instanceQueue, instanceRoute } from '../shared/transport/topology.ts';
import type { Consumer } from '../shared/transport/transport.ts';
import { Aborts } from './aborts.ts';
import { Admissions } from './admissions.ts';
import { type ApprovalDesk, approvalDesk } from './approvals/desk.ts';
import { artifactCapability } from './artifacts/capability.ts';
import { Capabilities, type CapabilityOptions, offer } from './capabilities.ts';
import { type CommandChannel, openCommandChannel, type ReceivedCommand } from './command-channel.ts';
import { describeCapability } from './describe.ts';
import { OURS } from './extensions.ts';
import { Slots } from './gate/capacity.ts';
import type { Host } from './host.ts';
import { Inquiries } from './inquiries.ts';
import { Instances } from './instances.ts';
import { type CalleeOptions, type CalleeSettings, resolveCalleeOptions } from './options.ts';
import { EventOutbox } from './outbox.ts';
import { outputFault } from './outputs.ts';
import { Pauses } from './pauses.ts';
import { type RecoveryParts, takeSessionsOf } from './recovery.ts';
import { purgeSessions } from './retention.ts';
import { Revocations } from './revocations.ts';
import type { Executor } from './run.ts';
import type { LiveSession } from './session.ts';
import { StoredCommands } from './stored-commands.ts';
import { Submissions } from './submissions.ts';
import { CalleeTelemetry } from './telemetry.ts';

/** What a harness vendor embeds. */
export interface Callee extends AsyncDisposable {
  /** Offers a capability. Before {@link start}. Throws `TypeError` for a declaration that is invalid. */
  capability(declaration: Capability, executor: Executor, options?: CapabilityOptions): this;
  /** Where people decide about the tasks that need their approval. */
  readonly approvals: ApprovalDesk;
  /** Ends a session because its approval no longer holds: FAILED `safety_violation`. Answers whether there was one to end. */
  revoke(sessionId: string, reason: string): Promise<boolean>;
  /** Everything on record about a session, signed: to be kept, and verified anywhere (`verifyEvidence`). */
  evidence(sessionId: string): Promise<string>;
  /** Continues the sessions that were left behind, then takes commands (HCP-119). */
  start(): Promise<void>;
  /**
   * Takes no more commands, gives running tasks that have no checkpoint time to end, hands the others over, publishes what
   * is left. Idempotent. The transport and the store stay open: they are yours.
   */
  close(): Promise<void>;
}

/** Makes a callee. Does no I/O; throws `TypeError`, one sentence, for options that cannot work. */
export function createCallee(options: CalleeOptions): Callee {
  return new CalleeProcess(resolveCalleeOptions(options));
}

const HOUR_MS = 3_600_000;

/** Capabilities the SDK brings along. */
const RESERVED = ['hcp.describe', 'hcp.artifact'];

class CalleeProcess implements Callee {
  readonly #settings: CalleeSettings;
  readonly approvals: ApprovalDesk;
  readonly #capabilities: Capabilities;
  readonly #live = new Map<string, LiveSession>();
  readonly #instances: Instances;
  readonly #sandbox: SchemaSandbox = createSchemaSandbox();
  readonly #outbox: EventOutbox;
  readonly #committer: GroupCommitter;
  readonly #channel: CommandChannel;
  readonly #submissions: Submissions;
  readonly #admissions: Admissions;
  readonly #aborts: Aborts;
  readonly #pauses: Pauses;
  readonly #revocations: Revocations;
  readonly #inquiries: Inquiries;
  readonly #stored: StoredCommands;
  readonly #recovery: RecoveryParts;
  readonly #closing = new AbortController();
  readonly #periodic: Periodic;
  #consumers: Consumer[] = [];
  #sweeping: Promise<void> | undefined;
  #keys: KeyRing | undefined;
  #started = false;
  /** Whether there may be sessions of ours in the store that nobody runs. */
  #hasStrays = true;
  #closed: Promise<void> | undefined;

  constructor(settings: CalleeSettings) {
    const { calleeId, transport, store, queue, prefetch, limits, clock, logger, maxBacklog } = settings;
    this.#settings = settings;
    this.#periodic = new Periodic(settings.clock, settings.logger);
    this.#instances = new Instances(store, settings);
    this.#outbox = new EventOutbox({ transport, store, clock, logger, maxBacklog });
    this.#capabilities = new Capabilities([...OURS, ...(settings.artifacts ? ['artifact/1'] : [])]);
    const audit = new AuditChain(store, { calleeId, clock });
    this.#committer = new GroupCommitter(store, { clock, logger, audit });
    this.#channel = openCommandChannel({
      ...{ calleeId, transport, queue, prefetch, limits, clock, logger },
      onRefused: (callerId, { reason_code: result, reason_message: reason, in_reply_to: message_id }) =>
        host.note({ kind: 'decision', details: { caller_id: callerId, message_id, result, reason } }),
    });
    const keys = () => this.#keyRing;
    const host: Host = {
      settings,
      clock,
      logger,
      store,
      capabilities: this.#capabilities,
      committer: this.#committer,
      outbox: this.#outbox,
      telemetry: new CalleeTelemetry(clock, () => this.#outbox.backlog),
      get keys() {
        return keys();
      },
      logAccess: ({ sessionId: session_id, callerId: caller_id, dataClassification: data_classification = 'T1' }) => {
        if (data_classification === 'T1') return;
        logger.info({ session_id, caller_id, data_classification }, 'The data of a task is looked at');
      },
      note: async (draft) => {
        await this.#committer.commit({ fence: { broken: false }, entries: [], audit: [draft] });
      },
      outputFault: (capability, task, result) => outputFault(this.#sandbox, capability, task, result),
      forget: (session) => {
        const { sessionId } = session.record;
        host.telemetry.left(sessionId);
        if (this.#live.get(sessionId) === session) this.#live.delete(sessionId);
      },
      lost: (session) => {
        this.#hasStrays = true;
        host.forget(session);
      },
    };
    const { policy, maxDurationMs, gateTimeoutMs } = settings;
    const gate = {
      ...{ policy, maxDurationMs, gateTimeoutMs, clock, logger, closing: this.#closing.signal },
      ...{ capabilities: this.#capabilities, sandbox: this.#sandbox, store, calleeId },
      ...{ link: transport.link, slots: new Slots(store, calleeId) },
    };
    const common = { host, live: this.#live, instanceId: () => this.#instances.id };
    this.#admissions = new Admissions({ host, gate, live: this.#live });
    this.#submissions = new Submissions({ ...common, admissions: this.#admissions, channel: this.#channel });
    this.#stored = new StoredCommands(host, (instanceId) => this.#ring(instanceId));
    const steering = { host, live: this.#live, stored: this.#stored };
    this.#aborts = new Aborts({ ...steering, admissions: this.#admissions });
    this.#pauses = new Pauses(steering);
    this.#revocations = new Revocations(steering);
    this.#inquiries = new Inquiries({ ...steering, channel: this.#channel });
    this.#recovery = { ...common, admissions: this.#admissions };
    this.approvals = approvalDesk({
      ...{ store, calleeId, clock },
      commit: (writes, notes) =>
        this.#committer.commit({ fence: { broken: false }, entries: [], writes, audit: notes }),
      onDecided: (sessionId) => void this.#decided(sessionId),
    });
  }

  capability(declaration: Capability, executor: Executor, options?: CapabilityOptions): this {
    if (this.#started) throw new TypeError('capability() must be called before start()');
    const offered = offer(declaration, executor, options);
    const { name } = offered.declaration;
    if (RESERVED.includes(name)) throw new TypeError(`Capability ${name} is the SDK's own`);
    this.#capabilities.add(offered);
    return this;
  }

  async start(): Promise<void> {
    if (this.#started) throw new TypeError('start() must be called once');
    if (this.#closed) throw new TypeError('start() comes too late: the callee is closed');
    if (this.#capabilities.isEmpty) throw new TypeError('start() needs a capability: call capability() first');
    this.#started = true;
    const { leaseMs, logger, keys, store, calleeId, clock } = this.#settings;
    await this.#instances.register();
    this.#keys = keys ?? (await openStoredKeyRing(store, calleeId, { clock }));
    this.#offerReserved();
    await this.#sweep();
    await this.#listenToBell();
    this.#consumers.push(await this.#channel.consume((command) => this.#obey(command)));
    await this.#takeStored();
    this.#periodic.every(leaseMs / 3, () => this.#tick());
    this.#periodic.every(HOUR_MS, () => this.#purge());
    logger.info({ callee_id: this.#settings.calleeId, instance_id: this.#instances.id }, 'The callee takes commands');
  }

  revoke(sessionId: string, reason: string): Promise<boolean> {
    return this.#revocations.revoke(sessionId, reason);
  }

  evidence(sessionId: string): Promise<string> {
    const { store, calleeId, clock } = this.#settings;
    return exportEvidence({ store, calleeId, sessionId, keys: this.#keyRing, clock });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const { clock, closeTimeoutMs } = this.#settings;
    this.#closing.abort(new HcpError('callee_closed', 'The callee is closed'));
    this.#periodic.stop();
    this.#admissions.close();
    const enough = new AbortController();
    const timeUp = delay(clock, closeTimeoutMs, enough.signal).catch(() => {});
    await Promise.race([Promise.all(this.#consumers.map((consumer) => consumer.close())), timeUp]);
    await this.#sweeping;
    await Promise.race([this.#handOver(timeUp), timeUp]);
    await Promise.race([this.#outbox.drained(), timeUp]);
    enough.abort();
    await this.#outbox.close();
    await this.#release();
    await this.#committer.close();
    await this.#sandbox.close();
  }

  /** Those that another instance can continue stop at once; the others get the time there is. */
  async #handOver(timeUp: Promise<void>): Promise<void> {
    const sessions = [...this.#live.values()];
    for (const session of sessions) if (session.isResumable) session.leave();
    await Promise.race([Promise.all(sessions.map((session) => session.ended())), timeUp]);
    for (const session of sessions) session.leave();
  }

  /** Nobody's sessions now, and the others are told. */
  async #release(): Promise<void> {
    if (!this.#started) return;
    const { store, transport, calleeId, logger } = this.#settings;
    try {
      await this.#disown();
      const { living } = await this.#instances.others();
      await this.#instances.forget(this.#instances.id);
      for (const other of living) this.#ring(other);
      await transport.remove(instanceQueue(calleeId, this.#instances.id));
    } catch (error) {
      // They wait for the lease instead.
      logger.warn({ err: error, store: store.constructor.name }, 'Sessions could not be handed over');
    }
  }

  async #disown(): Promise<void> {
    const { store, calleeId } = this.#settings;
    const where = [calleeId, 1, this.#instances.id];
    for (;;) {
      const rows = await store.scan('sessions', 'by_owner', { where });
      if (rows.length === 0) return;
      await store.commit(rows.map((row) => ({ patch: 'sessions', key: [String(row.session_id)], set: { owner: '' } })));
    }
  }

  async #obey(command: ReceivedCommand): Promise<void> {
    const { message } = command;
    if (message.type === 'task_submit') return this.#submissions.take({ ...command, message });
    if (message.type === 'abort') return this.#aborts.take({ ...command, message });
    if (message.type === 'x-pause' || message.type === 'x-resume') return this.#pauses.take({ ...command, message });
    return this.#inquiries.take({ ...command, message });
  }

  /** Takes what dead or closed instances left behind, and the commands other instances stored for us. One at a time. */
  #sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepOnce().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  async #sweepOnce(): Promise<void> {
    const { calleeId, transport, logger } = this.#settings;
    const { dead } = await this.#instances.others();
    const mine = this.#hasStrays ? [this.#instances.id] : [];
    this.#hasStrays = false;
    for (const owner of ['', ...mine, ...dead]) {
      const taken = await takeSessionsOf(this.#recovery, owner);
      if (taken > 0) logger.warn({ from: owner, taken }, 'Took over sessions');
      if (owner === '' || owner === this.#instances.id) continue;
      await this.#instances.forget(owner);
      await transport.remove(instanceQueue(calleeId, owner));
    }
    await this.#takeStored();
    await this.#admissions.look();
  }

  async #takeStored(): Promise<void> {
    for await (const { errand, forget } of this.#stored.all()) {
      const { task } = errand;
      if (task.type === 'abort') await this.#aborts.takeStored({ ...errand, task }, forget);
      else if (task.type === 'x-pause' || task.type === 'x-resume') {
        await this.#pauses.takeStored({ ...errand, task }, forget);
      } else if (task.type === 'revocation') await this.#revocations.takeStored({ ...errand, task }, forget);
      else await this.#inquiries.takeStored({ ...errand, task }, forget);
    }
  }

  /** Somebody decided at our own desk: judged here, or by the instance that has the session. */
  async #decided(sessionId: string): Promise<void> {
    const { store, logger } = this.#settings;
    try {
      const session = this.#live.get(sessionId);
      if (session) return await this.#admissions.judge(session);
      const row = await store.get('sessions', [sessionId]);
      if (typeof row?.owner === 'string' && row.owner !== '') this.#ring(row.owner);
    } catch (error) {
      // It is looked at again with the next sweep.
      logger.warn({ err: error, session_id: sessionId }, 'A decision could not be acted on at once');
    }
  }

  get #keyRing(): KeyRing {
    if (this.#keys === undefined) throw new TypeError('start() must be called first');
    return this.#keys;
  }

  /** What every callee can do. */
  #offerReserved(): void {
    const { calleeId, policy, store, clock, artifacts } = this.#settings;
    const { extensions } = this.#capabilities;
    const capabilities = () => this.#capabilities.all;
    const userIdOf = (sessionId: string) => this.#live.get(sessionId)?.record.userId;
    this.#capabilities.add(describeCapability({ calleeId, policy, capabilities, userIdOf, extensions }));
    if (artifacts === undefined) return;
    const { declaration, executor } = artifactCapability({ calleeId, store, clock, keys: this.#keyRing, ...artifacts });
    this.#capabilities.add(offer(declaration, executor));
  }

  async #tick(): Promise<void> {
    if (!(await this.#instances.renew())) {
      this.#settings.logger.error({ instance_id: this.#instances.id }, 'The lease was lost: all sessions stop here');
      for (const session of [...this.#live.values()]) session.lose();
      await this.#instances.register();
    }
    await this.#sweep();
  }

  async #purge(): Promise<void> {
    const { store, calleeId, clock, retentionMs, logger } = this.#settings;
    const before = clock.now() - retentionMs;
    const purged = await purgeSessions(store, calleeId, before, (sessionId) => this.#outbox.drop(sessionId));
    if (purged > 0) logger.info({ purged }, 'Removed sessions past their retention');
  }

  /** Other instances ring when there is something in the store for us. Without the right to a queue we look at every tick. */
  async #listenToBell(): Promise<void> {
    const { calleeId, transport, logger } = this.#settings;
    const answer = async () => {
      if (!this.#closing.signal.aborted) await this.#sweep();
    };
    try {
      const bell = instanceQueue(calleeId, this.#instances.id);
      const consumer = await transport.consume(bell, (delivery) => {
        delivery.ack();
        return answer();
      });
      this.#consumers.push(consumer);
    } catch (error) {
      if (!isHcpError(error, 'topology_forbidden') && !isHcpError(error, 'topology_missing')) throw error;
      logger.warn({ err: error }, 'No queue of its own for this instance: it looks into the store now and then');
    }
  }

  #ring(instanceId: string): void {
    const { calleeId, transport, logger } = this.#settings;
    const route = instanceRoute(calleeId, instanceId);
    transport.publish({ route, body: new Uint8Array(), properties: { appId: calleeId } }).catch((error: unknown) => {
      logger.warn({ err: error, instance_id: instanceId }, 'An instance could not be told: it will look by itself');
    });
  }
}
