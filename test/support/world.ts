import { randomBytes, randomUUID } from 'node:crypto';
import {
  acceptKnownCallers,
  type Callee,
  type CalleeOptions,
  createCallee,
  type Executor,
} from '../../callee/index.ts';
import type { Capability, TaskSubmitPayload } from '../../schemas/types.ts';
import type { Logger } from '../../shared/logger.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import type { Messages } from '../../shared/messages/message.ts';
import { parseMessage } from '../../shared/messages/parse.ts';
import type { Store } from '../../shared/store/store.ts';
import {
  commandQueue,
  commandRoute,
  deadLetterQueue,
  eventQueue,
  type QueueDeclaration,
} from '../../shared/transport/topology.ts';
import type { Consumer, Delivery, MessageProperties, Transport } from '../../shared/transport/transport.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import type { Stack } from './stacks.ts';

/** Any message a callee sends. */
export type Heard = Messages[Exclude<keyof Messages, 'task_submit' | 'abort'>];

const WAIT_MS = 20_000;

export const TASK: Capability = {
  name: 'test.task',
  version: '1.0.0',
  description: 'Whatever the test says',
  input_schema: { type: 'object' },
  output_schema: { type: 'object' },
  safety: { risk_ceiling: 'R1', requires_human_approval: false, involves_physical_resources: false },
};

/** Keeps what is logged, as text. */
export function recordingLogger(): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    lines.push(
      JSON.stringify({ level, ...fields, message }, (_, value) => (value instanceof Error ? String(value) : value)),
    );
  };
  return { lines, logger: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') } };
}

/** Deliveries awaited one by one, acked as they come. */
class Ear {
  readonly deliveries: Delivery[] = [];
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  consumer: Consumer | undefined;

  async listen(transport: Transport, queue: QueueDeclaration): Promise<void> {
    this.consumer = await transport.consume(queue, (delivery) => {
      delivery.ack();
      this.deliveries.push(delivery);
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  get untaken(): number {
    return this.deliveries.length - this.#taken;
  }

  async next(what: string): Promise<Delivery> {
    while (this.untaken === 0) {
      const arrival = new Promise<void>((resolve) => this.#waiting.push(resolve));
      await within(WAIT_MS, `${what}; so far: ${this.deliveries.map(brief).join(', ')}`, arrival);
    }
    return this.deliveries[this.#taken++] as Delivery; // there is one
  }
}

/** A caller by hand, and callees to talk to, with ids of their own on a stack. */
export class World implements AsyncDisposable {
  readonly callerId = `alpha-${randomBytes(4).toString('hex')}`;
  readonly calleeId = `lab-${randomBytes(4).toString('hex')}`;
  readonly stack: Stack;
  readonly lines: string[];
  readonly logger: Logger;
  readonly #resources = new AsyncDisposableStack();
  readonly #ear = new Ear();
  readonly #dead = new Ear();
  readonly #known = new Set<string>();
  /** The caller's own link. */
  transport!: Transport;
  store!: Store;

  private constructor(stack: Stack) {
    this.stack = stack;
    ({ lines: this.lines, logger: this.logger } = recordingLogger());
  }

  /** Listens as the caller before anything else (HCP-201). */
  static async create(stack: Stack): Promise<World> {
    const world = new World(stack);
    world.transport = await world.connect();
    world.store = world.#resources.use(await stack.openStore());
    await world.#ear.listen(world.transport, eventQueue(world.callerId));
    return world;
  }

  async connect(): Promise<Transport> {
    return this.#resources.use(await this.stack.connect());
  }

  /** A callee with links of its own, closed at the end. Not started. */
  async callee(options: Partial<CalleeOptions> = {}): Promise<Callee> {
    const transport = options.transport ?? (await this.connect());
    const store = options.store ?? this.#resources.use(await this.stack.openStore());
    const policy = acceptKnownCallers([this.callerId]);
    const { calleeId, logger } = this;
    const callee = createCallee({ calleeId, policy, logger, closeTimeoutMs: 2000, ...options, transport, store });
    return this.#resources.use(callee);
  }

  /** A started callee that does what `executor` says. */
  async serve(
    executor: Executor,
    options: Partial<CalleeOptions> = {},
    declaration: Partial<Capability> = {},
  ): Promise<Callee> {
    const callee = await this.callee(options);
    callee.capability({ ...TASK, ...declaration }, executor);
    await callee.start();
    return callee;
  }

  /** Publishes a submit and answers its message id. */
  async submit(payload: Partial<TaskSubmitPayload> = {}, messageId: string = randomUUID()): Promise<string> {
    const built = buildMessage({
      type: 'task_submit',
      sessionId: null,
      senderId: this.callerId,
      messageId: messageId as never, // a brand, and made just so
      payload: { capability: 'test.task', caller_id: this.callerId, intent: 'Do it', inputs: {}, ...payload },
    });
    await this.send(built.body, built.properties);
    return messageId;
  }

  async abort(sessionId: string, payload: { session_token?: string; reason?: string } = {}, senderId = this.callerId) {
    const built = buildMessage({ type: 'abort', sessionId, senderId, payload });
    await this.send(built.body, built.properties);
  }

  async send(body: Uint8Array, properties: MessageProperties): Promise<void> {
    const outcome = await this.transport.publish({ route: commandRoute(this.calleeId), body, properties });
    if (outcome !== 'confirmed') throw new Error(`The command was ${outcome}`);
  }

  /** The next message the caller hears; one that breaks its schema is an error. */
  async next(): Promise<Heard> {
    const delivery = await this.#ear.next('the next message to the caller');
    const parsed = parseMessage(delivery.body, delivery.properties);
    if (!parsed.ok) throw new Error(`The callee sent an invalid message: ${parsed.fault.message}`);
    const message = parsed.message as Heard; // nobody else writes to this queue
    this.#known.add(message.message_id);
    return message;
  }

  /** The next messages that were not heard before: what was not known to be confirmed is sent again, unchanged. */
  async hearFresh(count: number): Promise<Heard[]> {
    const heard: Heard[] = [];
    while (heard.length < count) {
      const before = this.#known.size;
      const message = await this.next();
      if (this.#known.size > before) heard.push(message);
    }
    return heard;
  }

  async hear(count: number): Promise<Heard[]> {
    const heard: Heard[] = [];
    while (heard.length < count) heard.push(await this.next());
    return heard;
  }

  /** Everything up to the next `session_closed`, in one line each. */
  async hearOut(): Promise<string[]> {
    const told: string[] = [];
    for (;;) {
      const message = await this.next();
      told.push(tell(message));
      if (message.type === 'event' && message.payload.event_type === 'session_closed') return told;
    }
  }

  /** Hears the standard start and answers the session's id. */
  async started(): Promise<{ sessionId: string; token: string }> {
    const [accepted, created, running] = await this.hear(3);
    const told = [accepted, created, running].map((message) => message && tell(message));
    if (accepted?.type !== 'task_accepted' || told[2] !== 'E2 PENDING→RUNNING safety_check_passed') {
      throw new Error(`Not the standard start: ${told.join(', ')}`);
    }
    return { sessionId: accepted.session_id, token: accepted.payload.session_token };
  }

  /** What has been heard so far, as it was received. */
  get received(): readonly Delivery[] {
    return this.#ear.deliveries;
  }

  /** What has arrived, but was not asked for. */
  get unheard(): number {
    return this.#ear.untaken;
  }

  /** A task of its own there and back: what the callee was going to say before has been said by then. */
  async echo(): Promise<void> {
    const before = this.unheard;
    const messageId = await this.submit({ capability: 'test.echo' });
    for (;;) {
      const message = await this.next();
      if (message.type === 'task_rejected' && message.payload.in_reply_to === messageId) return;
      throw new Error(`Heard ${tell(message)} (${before} were waiting)`);
    }
  }

  /** The next command that was dead-lettered. */
  async buried(): Promise<Delivery> {
    if (this.#dead.consumer === undefined) {
      await this.#dead.listen(this.transport, deadLetterQueue(commandQueue(this.calleeId)));
    }
    return this.#dead.next('a dead letter');
  }

  logged(pattern: RegExp): string[] {
    return this.lines.filter((line) => pattern.test(line));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

/** A message in a few words: `E3 progress`, `E4 RUNNING→COMPLETED task_completed`, `task_failed timeout`. */
export function tell(message: Heard): string {
  if (message.type === 'task_rejected') return `task_rejected ${message.payload.reason_code}`;
  if (message.type === 'task_failed') return `task_failed ${message.payload.error_code}`;
  if (message.type !== 'event') return message.type;
  const {
    event_type: type,
    sequence,
    data,
  } = message.payload as { event_type: string; sequence: number; data: Record<string, unknown> };
  if (type === 'state_changed') return `E${sequence} ${data.from_state}→${data.to_state} ${data.reason}`;
  if (type === 'session_closed') return `E${sequence} closed ${data.final_state} ${data.reason}`;
  return `E${sequence} ${type}`;
}

function brief(delivery: Delivery): string {
  const parsed = parseMessage(delivery.body, delivery.properties);
  // A dead letter may be anything.
  return parsed.ok ? tell(parsed.message as Heard) : `unreadable: ${parsed.fault.code}`;
}
