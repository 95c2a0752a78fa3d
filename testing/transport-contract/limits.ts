import assert from 'node:assert/strict';
import { isHcpError } from '../../shared/errors.ts';
import type { OutgoingMessage, Transport } from '../../shared/transport/transport.ts';
import { type Scenario, type Stage, series, texts } from './stage.ts';

type Outcome = 'confirmed' | 'unroutable' | 'refused';

async function attempt(stage: Stage, transport: Transport, message: OutgoingMessage): Promise<Outcome> {
  try {
    return await stage.within('the answer of a queue that may be full', transport.publish(message));
  } catch (error) {
    if (isHcpError(error, 'publish_refused')) return 'refused';
    throw error;
  }
}

/** Publishes one after another until refused; a broker may let a few more in than it should. */
async function fill(stage: Stage, transport: Transport, maxLength: number): Promise<string[]> {
  const accepted: string[] = [];
  for (const body of series(maxLength + 10)) {
    if ((await attempt(stage, transport, stage.command(body))) === 'refused') return accepted;
    accepted.push(body);
  }
  throw new assert.AssertionError({ message: `A queue of ${maxLength} took ${accepted.length} messages` });
}

export const limits: readonly Scenario[] = [
  {
    name: 'refuses what a full queue cannot take, loses nothing of what it took, and accepts again after draining',
    verifies: ['HCP-008'],
    async play(stage) {
      const transport = await stage.open();
      const queue = stage.commands({ maxLength: 5 });
      await transport.declare(queue);
      const accepted = await fill(stage, transport, 5);
      assert.ok(accepted.length >= 5, `accepted ${accepted.length}`);
      const inbox = await stage.consume(transport, queue, { settle: 'ack' });
      assert.deepEqual(texts(await inbox.take(accepted.length)), accepted);
      // The broker may be slow to see that there is room again.
      const deadline = Date.now() + stage.limitMs;
      while ((await attempt(stage, transport, stage.command('again'))) === 'refused') assert.ok(Date.now() < deadline);
      assert.deepEqual(texts([await inbox.next()]), ['again']);
    },
  },
  {
    name: 'refuses only the publishes to the full queue',
    async play(stage) {
      const transport = await stage.open();
      await transport.declare(stage.commands({ maxLength: 3 }));
      const inbox = await stage.consume(transport, stage.events());
      await fill(stage, transport, 3);
      const outcomes = [
        attempt(stage, transport, stage.command('over')),
        attempt(stage, transport, stage.event('fine')),
      ];
      assert.deepEqual(await Promise.all(outcomes), ['refused', 'confirmed']);
      assert.deepEqual(texts([await inbox.next()]), ['fine']);
    },
  },
  {
    name: 'drops the oldest messages of a full queue where the profile says so',
    async play(stage) {
      const transport = await stage.open();
      const queue = stage.commands({ profile: 'spec', maxLength: 5 });
      await transport.declare(queue);
      const bodies = series(30);
      await stage.send(transport, ...bodies);
      const inbox = await stage.consume(transport, queue, { prefetch: 50, settle: 'ack' });
      await inbox.takeAll(['m30']);
      const kept = texts(inbox.arrived);
      assert.ok(kept.length >= 5 && kept.length <= 7, `kept ${kept.length}`);
      assert.deepEqual(kept, bodies.slice(-kept.length));
    },
  },
];
