import { randomBytes, randomUUID } from 'node:crypto';
import type { TaskSubmitPayload } from '../../schemas/types.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import { parseMessage } from '../../shared/messages/parse.ts';
import { eventQueue } from '../../shared/transport/topology.ts';
import type { Consumer, Delivery } from '../../shared/transport/transport.ts';
import { within } from '../../testing/transport-contract/stage.ts';
import type { Heard, World } from './world.ts';

/** Another caller of the same callee. It has no queue before it listens. */
export class SecondCaller {
  readonly callerId = `beta-${randomBytes(4).toString('hex')}`;
  readonly #world: World;
  readonly #arrived: Delivery[] = [];
  readonly #waiting: ((delivery: Delivery) => void)[] = [];
  #consumer: Consumer | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  async listen(): Promise<void> {
    this.#consumer = await this.#world.transport.consume(eventQueue(this.callerId), (delivery) => {
      delivery.ack();
      const taker = this.#waiting.shift();
      if (taker) taker(delivery);
      else this.#arrived.push(delivery);
    });
  }

  /** Stops listening and removes its queue. */
  async vanish(): Promise<void> {
    await this.#consumer?.close();
    await this.#world.transport.remove(eventQueue(this.callerId));
  }

  async submit(payload: Partial<TaskSubmitPayload> = {}, messageId: string = randomUUID()): Promise<string> {
    const built = buildMessage({
      type: 'task_submit',
      sessionId: null,
      senderId: this.callerId,
      messageId: messageId as never, // a brand, and made just so
      payload: { capability: 'test.task', caller_id: this.callerId, intent: 'Do it', inputs: {}, ...payload },
    });
    await this.#world.send(built.body, built.properties);
    return messageId;
  }

  async next(): Promise<Heard> {
    const arrival = new Promise<Delivery>((resolve) => {
      const ready = this.#arrived.shift();
      if (ready) resolve(ready);
      else this.#waiting.push(resolve);
    });
    const { body, properties } = await within(20_000, 'the next message to the second caller', arrival);
    const parsed = parseMessage(body, properties);
    if (!parsed.ok) throw new Error(`The callee sent an invalid message: ${parsed.fault.message}`);
    return parsed.message as Heard; // a callee sends nothing else
  }

  async hear(count: number): Promise<Heard[]> {
    const heard: Heard[] = [];
    while (heard.length < count) heard.push(await this.next());
    return heard;
  }
}
