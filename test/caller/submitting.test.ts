import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Caller, Session } from '../../caller/index.ts';
import type { TaskSubmit } from '../../schemas/types.ts';
import { eventQueue } from '../../shared/transport/topology.ts';
import { CallerRoom, collect, DO_IT, TIMES } from '../support/caller-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const TRY_MS = TIMES.submitTimeoutMs;

/** Two submits at once; which one is sent first is not told. */
function submitTwo(caller: Caller, calleeId: string): Record<'a' | 'b', Promise<Session>> {
  const submit = (name: string) => caller.submit({ ...DO_IT, inputs: { name } }, { calleeId });
  return { a: submit('a'), b: submit('b') };
}

function nameOf(submit: TaskSubmit): 'a' | 'b' {
  return submit.payload.inputs.name as 'a' | 'b'; // as submitTwo has it
}

describeOnStacks('submitting', (stack) => {
  verifies(['HCP-201'], 'the first submit listens first, so that the quickest answer is heard', async () => {
    await using room = await CallerRoom.create(stack());
    const order: string[] = [];
    await using transport = await stack().connect();
    const { consume, publish } = transport;
    transport.consume = (queue, ...rest) => {
      const consuming = consume.call(transport, queue, ...rest);
      return consuming.finally(() => order.push(`consume ${queue.name === eventQueue(room.callerId).name}`));
    };
    transport.publish = (...message) => {
      order.push('publish');
      return publish.apply(transport, message);
    };
    const caller = await room.caller({ transport });
    await room.begin(caller);
    expect(order).toEqual(['consume true', 'publish']);
  });

  verifies(
    ['V-124', 'HCP-202'],
    'an unanswered submit is sent five times, the same bytes each time, then given up',
    async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller();
      const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
      const outcome = submitted.catch((error: unknown) => error);
      const first = await room.callee.next();
      for (let again = 2; again <= 5; again++) {
        await room.clock.ring(TRY_MS);
        const repeated = await room.callee.next();
        expect(repeated.body).toEqual(first.body);
        expect(repeated.properties.messageId).toBe(first.properties.messageId);
      }
      await room.clock.ring(TRY_MS);
      expect(await outcome).toMatchObject({ code: 'submit_timeout', retryable: true });
      expect(room.told.all).toEqual(['trouble submit_timeout']);
      expect(room.clock.has(TRY_MS)).toBe(false);
      expect(room.callee.unheard).toBe(0);
    },
  );

  verifies('HCP-202', 'an answer to a repeated submit counts, and ends the repeating', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    await room.callee.next();
    await room.clock.ring(TRY_MS);
    const sessionId = await room.callee.accept();
    expect((await submitted).sessionId).toBe(sessionId);
    expect(room.clock.has(TRY_MS)).toBe(false);
  });

  verifies('V-125', 'a callee without a queue is unreachable at once', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    await expect(caller.submit(DO_IT, { calleeId: `nobody-${randomUUID()}` })).rejects.toMatchObject({
      code: 'callee_unreachable',
    });
    expect(room.clock.has(TRY_MS)).toBe(false);
    const open = await room.store.scan('submissions', 'by_status', { where: [room.callerId, 'open'], limit: 10 });
    expect(open).toEqual([]);
  });

  verifies(['V-123', 'HCP-205'], 'a session accepted after the caller gave up is aborted, and told', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller({ submitTries: 1 });
    const outcome = caller.submit(DO_IT, { calleeId: room.calleeId }).catch((error: unknown) => error);
    const submit = await room.callee.command('task_submit');
    await room.clock.ring(TRY_MS);
    expect(await outcome).toMatchObject({ code: 'submit_timeout' });
    const sessionId = await room.callee.accept(submit);
    const abort = await room.callee.command('abort');
    expect(abort).toMatchObject({ session_id: sessionId, payload: { session_token: `token of ${sessionId}` } });
    await room.told.until('uncorrelated task_accepted');
    expect(await caller.session(sessionId)).toBeUndefined();
  });

  verifies(['V-121', 'HCP-220'], 'the same acceptance twice is one session', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    const messageId = randomUUID();
    const sessionId = await room.callee.accept(submit, {}, { messageId });
    await room.callee.accept(submit, { sessionId }, { messageId });
    const session = await submitted;
    await room.callee.complete(sessionId, { once: true });
    expect(await session.result()).toMatchObject({ status: 'completed', outputs: { once: true } });
    await caller.close();
    expect([room.callee.unheard, room.told.all]).toEqual([0, []]);
  });

  verifies(['V-122', 'HCP-205'], 'a second session for one submit is aborted, the first goes on', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    const first = await room.callee.accept(submit);
    const session = await submitted;
    const second = await room.callee.accept(submit);
    expect(await room.callee.command('abort')).toMatchObject({ session_id: second });
    expect(session.sessionId).toBe(first);
    await room.callee.complete(first, { of: 'first' });
    expect(await session.result()).toMatchObject({ outputs: { of: 'first' } });
  });

  verifies('HCP-220', 'a rejection after an acceptance is logged and ignored', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    const sessionId = await room.callee.accept(submit);
    const session = await submitted;
    await room.callee.reject(submit);
    await room.callee.complete(sessionId);
    expect(await session.result()).toMatchObject({ status: 'completed' });
    await caller.close();
    expect(room.logged(/submit that is not open: ignored/)).toHaveLength(1);
    const row = await room.store.get('submissions', [room.callerId, submit.message_id]);
    expect(row).toMatchObject({ status: 'accepted', session_id: sessionId });
  });

  verifies(
    ['V-132', 'V-133'],
    'a rejection is an outcome with the raw code, whatever session id it carries',
    async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller();
      const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
      await room.callee.reject(undefined, { reason_code: 'quota' }, { sessionId: randomUUID() });
      const session = await submitted;
      expect([session.sessionId, session.state]).toEqual([undefined, 'REJECTED']);
      expect(await session.result()).toMatchObject({
        status: 'rejected',
        reasonCode: 'quota',
        reasonMessage: 'Not you',
      });
      expect(await collect(session.events())).toEqual([]);
      expect(await session.abort()).toMatchObject({ status: 'rejected' });
    },
  );

  verifies(['V-11', 'HCP-204'], 'two submits answered in reverse each get their own session', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = submitTwo(caller, room.calleeId);
    const submits = [await room.callee.command('task_submit'), await room.callee.command('task_submit')];
    const sessionIds: Record<string, string> = {};
    for (const submit of submits.reverse()) {
      const sessionId = await room.callee.accept(submit);
      sessionIds[nameOf(submit)] = sessionId;
      await room.callee.report(sessionId, 1, 2);
      await room.callee.complete(sessionId);
      await room.callee.closed(sessionId, 3, 'COMPLETED');
    }
    for (const name of ['a', 'b'] as const) {
      const session = await submitted[name];
      expect(session.sessionId).toBe(sessionIds[name]);
      const events = await collect(session.events());
      expect(events.map(({ payload }) => payload.sequence)).toEqual([1, 2, 3]);
    }
  });

  verifies(['V-134', 'HCP-204'], 'an answer that names no submit is for the only one open', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    for (const appId of [undefined, null]) {
      const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
      const saying = appId === null ? { appId } : {};
      const sessionId = await room.callee.accept(undefined, { in_reply_to: undefined }, saying);
      expect((await submitted).sessionId).toBe(sessionId);
    }
    const refused = caller.submit(DO_IT, { calleeId: room.calleeId });
    await room.callee.reject(undefined, { in_reply_to: undefined });
    expect(await (await refused).result()).toMatchObject({ status: 'rejected' });
  });

  verifies(['V-134', 'HCP-204'], 'with two open an answer that names none is handed over, not guessed', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = submitTwo(caller, room.calleeId);
    const [first, second] = [await room.callee.command('task_submit'), await room.callee.command('task_submit')];
    await room.callee.accept(first, { in_reply_to: undefined });
    await room.told.until('uncorrelated task_accepted');
    await room.callee.reject(first, { in_reply_to: undefined });
    await room.told.until('uncorrelated task_rejected');
    for (const submit of [first, second]) {
      const sessionId = await room.callee.accept(submit);
      expect((await submitted[nameOf(submit)]).sessionId).toBe(sessionId);
    }
  });

  verifies(['HCP-204', 'HCP-220'], 'the header names the submit where the payload does not', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const submitted = submitTwo(caller, room.calleeId);
    for (const submit of [await room.callee.command('task_submit'), await room.callee.command('task_submit')]) {
      const headers = { 'x-hcp-in-reply-to': submit.message_id };
      const sessionId = await room.callee.accept(submit, { in_reply_to: undefined }, { headers });
      expect((await submitted[nameOf(submit)]).sessionId).toBe(sessionId);
    }
  });

  verifies(['HCP-204', 'HCP-220'], 'an answer that names none and comes again is not taken for the next', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const [accepted, rejected] = [randomUUID(), randomUUID()];
    const nameless = { in_reply_to: undefined };
    const first = caller.submit(DO_IT, { calleeId: room.calleeId });
    const firstId = await room.callee.accept(undefined, nameless, { messageId: accepted });
    await first;
    const second = caller.submit(DO_IT, { calleeId: room.calleeId });
    await room.callee.reject(undefined, nameless, { messageId: rejected });
    await second;
    const third = caller.submit(DO_IT, { calleeId: room.calleeId });
    const submit = await room.callee.command('task_submit');
    await room.callee.accept(submit, { ...nameless, sessionId: firstId }, { messageId: accepted });
    await room.callee.reject(submit, nameless, { messageId: rejected });
    const thirdId = await room.callee.accept(submit);
    expect((await third).sessionId).toBe(thirdId);
    expect(room.told.all).toEqual([]);
  });

  verifies('HCP-204', 'an answer to a submit nobody made is handed over', async () => {
    await using room = await CallerRoom.create(stack());
    await room.caller();
    const stranger = { in_reply_to: randomUUID(), session_token: 't', risk_level: 'R1' };
    await room.callee.say('task_accepted', randomUUID(), stranger);
    await room.told.until('uncorrelated task_accepted');
    expect(room.callee.unheard).toBe(0);
  });
});
