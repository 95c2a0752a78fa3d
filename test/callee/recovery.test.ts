import { expect } from 'vitest';
import type { Transport } from '../../shared/transport/transport.ts';
import { CalleeProcess } from '../support/callee-process.ts';
import { type ScriptStep, scripted } from '../support/scripted.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

/** A callee process that continues its sessions at once when it comes back. */
async function startProcess(stack: Stack, world: World): Promise<CalleeProcess> {
  const { transportUrl, storeUrl } = stack;
  const { calleeId, callerId } = world;
  const callee = new CalleeProcess({ transportUrl, storeUrl, calleeId, callerId, instanceId: 'one' });
  await callee.ready();
  return callee;
}

async function submitScript(world: World, ...script: ScriptStep[]): Promise<void> {
  await world.submit({ inputs: { script } });
}

/** No sequence has two contents. */
function assertUnequivocal(world: World): void {
  const contents = new Map<unknown, string>();
  for (const { body } of world.received) {
    const text = Buffer.from(body).toString();
    const { type, payload } = JSON.parse(text);
    if (type !== 'event') continue;
    expect(contents.get(payload.sequence) ?? text).toBe(text);
    contents.set(payload.sequence, text);
  }
}

/** A link whose publishes get lost on the way there, or whose confirms get lost on the way back. */
function withheld(transport: Transport, how: 'never sent' | 'never confirmed') {
  const { promise: first, resolve: tellFirst } = Promise.withResolvers<void>();
  const publish: Transport['publish'] = (message, options) => {
    tellFirst();
    if (how === 'never confirmed') void transport.publish(message, options);
    return new Promise(() => {});
  };
  const bound = new Proxy(transport, {
    get: (target, name) => {
      if (name === 'publish') return publish;
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return { transport: bound, first };
}

describeOnStacks('recovery of a callee that was killed', (stack) => {
  verifies(
    ['V-16', 'HCP-112', 'HCP-117', 'HCP-118', 'HCP-119'],
    'a running task continues from its last checkpoint in the same session, and no number is used twice',
    async () => {
      await using world = await World.create(stack());
      await using first = await startProcess(stack(), world);
      await submitScript(
        world,
        { progress: 'a' },
        { warning: 'w' },
        { checkpoint: 'c' },
        { hangUnlessResumed: true },
        { progress: 'b' },
      );
      expect((await world.hear(6)).map(tell).slice(3)).toEqual(['E3 progress', 'E4 warning', 'E5 checkpoint_created']);
      await first.kill();
      await using second = await startProcess(stack(), world);
      const heard = await world.hearFresh(6);
      expect(heard.map(tell)).toEqual([
        'E6 RUNNING→PAUSED callee_restarted',
        'E7 PAUSED→RUNNING recovered_from_checkpoint',
        'E8 progress',
        'task_completed',
        'E9 RUNNING→COMPLETED task_completed',
        'E10 closed COMPLETED task_completed',
      ]);
      expect(heard[3]).toMatchObject({
        payload: { execution_summary: { checkpoints_created: 1, warnings: ['w'] } },
      });
      expect(second.errors).toBe('');
      assertUnequivocal(world);
    },
  );

  verifies('V-17', 'a running task without a checkpoint fails', async () => {
    await using world = await World.create(stack());
    await using first = await startProcess(stack(), world);
    await submitScript(world, { progress: 'a' }, { hang: true });
    await world.hear(4);
    await first.kill();
    await using _second = await startProcess(stack(), world);
    expect((await world.hearFresh(3)).map(tell)).toEqual([
      'task_failed internal_error',
      'E4 RUNNING→FAILED callee_restarted',
      'E5 closed FAILED callee_restarted',
    ]);
    assertUnequivocal(world);
  });

  verifies('V-16', 'a paused task stays paused until it resumes by itself', async () => {
    await using world = await World.create(stack());
    await using first = await startProcess(stack(), world);
    await submitScript(world, { checkpoint: 'c' }, { pause: true }, { hangUnlessResumed: true }, { resume: true });
    await world.hear(5);
    await first.kill();
    await using _second = await startProcess(stack(), world);
    expect((await world.hearFresh(4)).map(tell)).toEqual([
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
      'task_completed',
      'E6 RUNNING→COMPLETED task_completed',
      'E7 closed COMPLETED task_completed',
    ]);
  });

  verifies(['V-20', 'HCP-122'], 'an abort under way is finished: the capability cleans up again', async () => {
    await using world = await World.create(stack());
    const { calleeId } = world;
    const { promise: aborting, resolve: tellAborting } = Promise.withResolvers<void>();
    const callee = await world.callee({ calleeId, instanceId: 'one' });
    callee.capability(TASK, scripted, {
      cleanup: () => {
        tellAborting();
        return new Promise(() => {});
      },
    });
    await callee.start();
    await submitScript(world, { progress: 'a' }, { hang: true });
    const { sessionId } = await world.started();
    await world.abort(sessionId);
    await aborting;
    expect((await world.hear(2)).map(tell).at(-1)).toBe('E4 RUNNING→ABORTING abort_requested');
    await using second = await startProcess(stack(), world);
    await second.said('cleaned up');
    expect((await world.hearFresh(2)).map(tell)).toEqual([
      'E5 ABORTING→ABORTED cleanup_complete',
      'E6 closed ABORTED cleanup_complete',
    ]);
  });

  verifies(['V-18', 'HCP-112'], 'what was stored but never published appears after the restart, in order', async () => {
    await using world = await World.create(stack());
    const mute = withheld(await world.connect(), 'never sent');
    await world.serve(async () => ({ outputs: { done: true } }), { transport: mute.transport, instanceId: 'one' });
    await world.submit();
    await mute.first;
    expect(world.received.length).toBe(0);
    await using _second = await startProcess(stack(), world);
    expect(await world.hearOut()).toEqual([
      'task_accepted',
      'E1 session_created',
      'E2 PENDING→RUNNING safety_check_passed',
      'task_completed',
      'E3 RUNNING→COMPLETED task_completed',
      'E4 closed COMPLETED task_completed',
    ]);
  });

  verifies(
    ['V-19', 'HCP-112'],
    'what was published but never confirmed is sent again with the same ids and bytes',
    async () => {
      await using world = await World.create(stack());
      const deaf = withheld(await world.connect(), 'never confirmed');
      await world.serve(async () => ({ outputs: { done: true } }), { transport: deaf.transport, instanceId: 'one' });
      await world.submit();
      await world.hearOut();
      await using _second = await startProcess(stack(), world);
      await world.hearOut();
      const bodies = world.received.map(({ body }) => Buffer.from(body).toString());
      expect(bodies.slice(6)).toEqual(bodies.slice(0, 6));
    },
  );

  verifies('V-81', 'an abort that was sent meanwhile is obeyed after the recovery', async () => {
    await using world = await World.create(stack());
    await using first = await startProcess(stack(), world);
    await submitScript(world, { checkpoint: 'c' }, { hang: true });
    const { sessionId } = await world.started();
    await world.hear(1);
    await first.kill();
    await world.abort(sessionId);
    await using _second = await startProcess(stack(), world);
    expect((await world.hearFresh(5)).map(tell)).toEqual([
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
      'E6 RUNNING→ABORTING abort_requested',
      'E7 ABORTING→ABORTED cleanup_complete',
      'E8 closed ABORTED cleanup_complete',
    ]);
  });

  verifies('V-16', 'a submit that was being judged is judged again', async () => {
    await using world = await World.create(stack());
    const { promise: judging, resolve: tellJudging } = Promise.withResolvers<void>();
    await world.serve(async () => ({ outputs: {} }), {
      instanceId: 'one',
      policy: {
        callers: () => {
          tellJudging();
          return new Promise(() => {});
        },
      },
    });
    await submitScript(world, { progress: 'a' });
    await judging;
    await using _second = await startProcess(stack(), world);
    expect((await world.hearOut()).slice(-2)).toEqual([
      'E4 RUNNING→COMPLETED task_completed',
      'E5 closed COMPLETED task_completed',
    ]);
  });
});
