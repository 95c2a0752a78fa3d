import { expect } from 'vitest';
import { CallerRoom, DO_IT, isPending } from '../support/caller-room.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';

const inForce = { extensions: { 'pause/1': {} } };

/** With a handler, and with nobody reading: a state is followed either way. */
const MANNERS = [
  ['with a handler', { onEvent: () => {} }],
  ['with nobody reading', {}],
] as const;

describeOnStacks('pausing', (stack) => {
  for (const [manner, options] of MANNERS) {
    verifies(['P6', 'V-04'], `asks with the token and waits for the callee's own word, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const { session, sessionId } = await room.begin(await room.caller(options), inForce);
      const session_token = `token of ${sessionId}`;
      await room.callee.move(sessionId, 1, 'PENDING', 'RUNNING');
      const paused = session.pause({ mode: 'immediate', drainTimeoutMs: 30_000, reason: 'Power' });
      expect(await room.callee.command('x-pause')).toMatchObject({
        session_id: sessionId,
        payload: { session_token, mode: 'immediate', drain_timeout: 'PT30S', reason: 'Power' },
      });
      expect(await isPending(paused)).toBe(true);
      await room.callee.report(sessionId, 2);
      await room.callee.move(sessionId, 3, 'RUNNING', 'PAUSED');
      await room.within('the pause', paused);
      expect(session.state).toBe('PAUSED');

      const resumed = session.resume('Power is back');
      const { payload } = await room.callee.command('x-resume');
      expect(payload).toEqual({ session_token, reason: 'Power is back' });
      await room.callee.report(sessionId, 4);
      await room.followed(sessionId, ({ last_processed_sequence: at }) => at === ('onEvent' in options ? 4 : -1));
      expect(await isPending(resumed)).toBe(true);
      await room.callee.move(sessionId, 5, 'PAUSED', 'RUNNING');
      await room.within('the resumption', resumed);
      expect(session.state).toBe('RUNNING');
    });

    verifies('P6', `a pause that was over in a moment was one, ${manner}`, async () => {
      await using room = await CallerRoom.create(stack());
      const { session, sessionId } = await room.begin(await room.caller(options), inForce);
      const paused = session.pause();
      expect((await room.callee.command('x-pause')).payload).toEqual({
        session_token: `token of ${sessionId}`,
        mode: 'drain',
      });
      // They wait for the first one, and have their turn together.
      await room.callee.move(sessionId, 2, 'RUNNING', 'PAUSED');
      await room.callee.move(sessionId, 3, 'PAUSED', 'RUNNING');
      await room.callee.move(sessionId, 1, 'PENDING', 'RUNNING');
      await room.within('the pause', paused);
    });
  }

  verifies(
    ['P6', 'P9'],
    'is a mistake where it was not agreed; what a program asks for goes with its task',
    async () => {
      await using room = await CallerRoom.create(stack());
      const caller = await room.caller();
      const { session } = await room.begin(caller, { extensions: { 'replay/1': {} } });
      await expect(session.pause()).rejects.toThrow(TypeError);
      await expect(session.resume()).rejects.toThrow(TypeError);
      const submitted = caller.submit(
        { ...DO_IT, extensions: { 'pause/1': { required: true } } },
        { calleeId: room.calleeId },
      );
      const submit = await room.callee.command('task_submit');
      expect(submit.payload.extensions).toMatchObject({ 'pause/1': { required: true }, 'replay/1': {} });
      await room.callee.accept(submit, inForce);
      const agreed = await submitted;
      await expect(agreed.pause({ drainTimeoutMs: 0 })).rejects.toThrow(/drainTimeoutMs must be an integer/);
      // @ts-expect-error A program in JavaScript may say anything.
      await expect(agreed.pause({ mode: 'soon' })).rejects.toThrow(/mode must be 'drain' or 'immediate'/);
      expect(room.callee.unheard).toBe(0);
    },
  );

  verifies('P6', 'reaches nobody when the callee is gone', async () => {
    await using room = await CallerRoom.create(stack());
    const { session } = await room.begin(await room.caller(), inForce);
    await room.callee.vanish();
    await expect(session.pause()).rejects.toMatchObject({ code: 'callee_unreachable' });
  });

  verifies('P6', 'a session that ends instead says so; one that has ended is not asked', async () => {
    await using room = await CallerRoom.create(stack());
    const caller = await room.caller();
    const { session, sessionId } = await room.begin(caller, inForce);
    const paused = session.pause();
    await room.callee.command('x-pause');
    await room.callee.complete(sessionId);
    await expect(paused).rejects.toMatchObject({ code: 'session_closed' });
    await expect(session.resume()).rejects.toMatchObject({ code: 'session_closed' });
    const submitted = caller.submit(DO_IT, { calleeId: room.calleeId });
    await room.callee.reject(undefined);
    await expect((await submitted).pause()).rejects.toMatchObject({ code: 'session_closed' });
    expect(room.callee.unheard).toBe(0);
  });

  verifies('P6', 'a signal ends the waiting with its reason', async () => {
    await using room = await CallerRoom.create(stack());
    const { session, sessionId } = await room.begin(await room.caller(), inForce);
    const impatience = new AbortController();
    const { signal } = impatience;
    const paused = session.pause({ signal });
    await room.callee.command('x-pause');
    const reason = new Error('No time');
    impatience.abort(reason);
    await expect(paused).rejects.toBe(reason);
    await expect(session.resume(undefined, { signal })).rejects.toBe(reason);
    await room.callee.complete(sessionId);
    await session.result();
    expect(room.callee.unheard).toBe(0);
  });

  verifies(['P6', 'HCP-215'], 'works on a session of an earlier life', async () => {
    await using room = await CallerRoom.create(stack());
    const first = await room.caller();
    const { sessionId } = await room.begin(first, inForce);
    await first.close();
    const session = await (await room.caller()).session(sessionId);
    const paused = session?.pause();
    expect((await room.callee.command('x-pause')).payload.session_token).toBe(`token of ${sessionId}`);
    await room.callee.move(sessionId, 1, 'RUNNING', 'PAUSED');
    await paused;
    expect(session?.state).toBe('PAUSED');
  });
});
