import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { acceptKnownCallers, type Executor } from '../../callee/index.ts';
import { purgeSessions } from '../../callee/retention.ts';
import type { TaskRejectedPayload } from '../../schemas/types.ts';
import { CalleeProcess } from '../support/callee-process.ts';
import { untilStopped } from '../support/executors.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { type Heard, TASK, tell, World } from '../support/world.ts';

const RESUMABLE = { extensions: ['resume/1'] };

/** Where to continue. */
interface Place {
  readonly session_id: string;
  readonly checkpoint_id: string;
}

function from(place: unknown) {
  return { extensions: { 'resume/1': place } };
}

/** Stores where it is and fails; continued, it tells from where. */
const interrupted: Executor = async (_, run) => {
  if (run.resumedFrom) return { outputs: { from: run.resumedFrom.data } };
  await run.checkpoint({ done: 0 }, { description: 'not this one', resumable: false });
  await run.checkpoint({ done: 7 }, { description: 'after seven' });
  throw new Error('The lamp broke');
};

function lastCheckpoint(message: Heard | undefined): string {
  if (message?.type !== 'task_failed') throw new Error(`Expected a failure, heard ${message && tell(message)}`);
  return String(message.payload.error_details?.last_checkpoint);
}

/** Runs a task that is interrupted, and answers where it can go on, and where not. */
async function interrupt(world: World, payload = {}): Promise<Place & { readonly unfit: string }> {
  await world.submit(payload);
  const { sessionId } = await world.started();
  const [unfit, , failed] = await world.hear(3);
  await world.hearOut();
  const unfitId = unfit?.type === 'event' ? String(unfit.payload.data.checkpoint_id) : '';
  return { session_id: sessionId, checkpoint_id: lastCheckpoint(failed), unfit: unfitId };
}

async function rejection(world: World): Promise<TaskRejectedPayload> {
  const message = await world.next();
  if (message.type !== 'task_rejected') throw new Error(`Expected a rejection, heard ${tell(message)}`);
  const { in_reply_to: _, ...words } = message.payload;
  return words;
}

describeOnStacks('continuing the work of an earlier session', (stack) => {
  verifies(['resume/1', 'P8'], 'happens in a new one that starts from the checkpoint named', async () => {
    await using world = await World.create(stack());
    await world.serve(interrupted, {}, RESUMABLE);
    const { unfit: _, ...place } = await interrupt(world);
    await world.submit(from({ ...place, required: true }));
    const heard = await world.hear(6);
    expect(heard.map(tell)).toEqual([
      'task_accepted',
      'E1 session_created',
      'E2 PENDING→RUNNING safety_check_passed',
      'task_completed',
      'E3 RUNNING→COMPLETED task_completed',
      'E4 closed COMPLETED task_completed',
    ]);
    expect(heard[0]).toMatchObject({ payload: { extensions: { 'resume/1': {} } } });
    expect(heard[0]?.session_id).not.toBe(place.session_id);
    expect(heard[3]).toMatchObject({
      payload: { outputs: { from: { done: 7 } }, execution_summary: { checkpoints_created: 0 } },
    });
  });

  verifies('resume/1', 'finds the session however its id is spelt', async () => {
    await using world = await World.create(stack());
    await world.serve(interrupted, {}, RESUMABLE);
    const { session_id, checkpoint_id } = await interrupt(world);
    await world.submit(from({ session_id: session_id.toUpperCase(), checkpoint_id }));
    await world.started();
    expect(await world.next()).toMatchObject({ type: 'task_completed', payload: { outputs: { from: { done: 7 } } } });
  });

  verifies('resume/1', 'works again and again, also when nothing was added', async () => {
    await using world = await World.create(stack());
    const always: Executor = async (_, run) => {
      if (run.resumedFrom === undefined) await run.checkpoint({ done: 7 }, { description: 'after seven' });
      throw new Error(`The lamp broke after ${JSON.stringify(run.resumedFrom?.data)}`);
    };
    await world.serve(always, {}, RESUMABLE);
    await world.submit();
    let { sessionId } = await world.started();
    await world.next();
    const checkpoint_id = lastCheckpoint(await world.next());
    await world.hearOut();
    for (let again = 0; again < 3; again++) {
      await world.submit(from({ session_id: sessionId, checkpoint_id }));
      ({ sessionId } = await world.started());
      const failed = await world.next();
      expect(failed).toMatchObject({ payload: { error_message: 'The lamp broke after {"done":7}' } });
      expect(lastCheckpoint(failed)).toBe(checkpoint_id);
      await world.hearOut();
    }
  });

  verifies(['resume/1', 'V-16'], 'does not need the earlier one any more once it is accepted', async () => {
    await using world = await World.create(stack());
    const lives: unknown[] = [];
    const waiting: Executor = async (task, run) => {
      if (run.resumedFrom === undefined) return interrupted(task, run);
      lives.push(run.resumedFrom.data);
      return lives.length < 2 ? untilStopped(task, run) : { outputs: { from: run.resumedFrom.data } };
    };
    const first = await world.serve(waiting, {}, RESUMABLE);
    const { session_id, checkpoint_id } = await interrupt(world);
    await world.submit(from({ session_id, checkpoint_id }));
    await world.started();
    expect(await purgeSessions(world.store, world.calleeId, Date.now() + 1, () => {})).toBe(1);
    await first.close();
    await world.serve(waiting, {}, RESUMABLE);
    const heard = await world.hear(5);
    expect(heard.map(tell)).toEqual([
      'E3 RUNNING→PAUSED callee_restarted',
      'E4 PAUSED→RUNNING recovered_from_checkpoint',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ]);
    expect(heard[2]).toMatchObject({ payload: { outputs: { from: { done: 7 } } } });
    expect(lives).toEqual([{ done: 7 }, { done: 7 }]);
  });

  verifies(['resume/1', 'V-16'], 'goes on from there when its callee is killed before its own checkpoint', async () => {
    await using world = await World.create(stack());
    const { transportUrl, storeUrl } = stack();
    const { calleeId, callerId } = world;
    const options = { transportUrl, storeUrl, calleeId, callerId, instanceId: 'one' };
    const first = new CalleeProcess(options);
    await first.ready();
    const inputs = { script: [{ progress: 'Skipped' }, { checkpoint: 'c' }, { progress: 'On' }, { hang: true }] };
    await world.submit({ inputs });
    const { sessionId } = await world.started();
    const checkpoint = (await world.hear(3))[1];
    const checkpoint_id = checkpoint?.type === 'event' ? checkpoint.payload.data.checkpoint_id : undefined;
    await world.abort(sessionId);
    await world.hearOut();
    await world.submit({ inputs, ...from({ session_id: sessionId, checkpoint_id }) });
    await world.started();
    expect(tell(await world.next())).toBe('E3 progress');
    await first.kill();
    await using second = new CalleeProcess(options);
    await second.ready();
    const heard = await world.hearFresh(3);
    expect(heard.map(tell)).toEqual([
      'E4 RUNNING→PAUSED callee_restarted',
      'E5 PAUSED→RUNNING recovered_from_checkpoint',
      'E6 progress',
    ]);
    expect(heard[2]).toMatchObject({ payload: { data: { message: 'On' } } });
  });

  verifies(['resume/1', 'P8'], 'is refused in the same words whatever does not fit', async () => {
    await using world = await World.create(stack());
    const beta = new SecondCaller(world);
    await beta.listen();
    const callee = await world.callee({ policy: acceptKnownCallers([world.callerId, beta.callerId]) });
    const ran: unknown[] = [];
    const watching: Executor = async (task, run) => {
      if (task.extensions) ran.push(task.extensions);
      if (!task.inputs.wait) return interrupted(task, run);
      await run.checkpoint({ done: 1 }, { description: 'while it runs' });
      return untilStopped(task, run);
    };
    callee.capability({ ...TASK, ...RESUMABLE }, watching);
    callee.capability({ ...TASK, ...RESUMABLE, name: 'test.other' }, watching);
    await callee.start();

    const own = await interrupt(world);
    const other = await interrupt(world, { capability: 'test.other' });
    await beta.submit();
    const theirs = await beta.hear(8);
    await world.submit({ inputs: { wait: true } });
    const { sessionId: unfinished } = await world.started();
    const created = await world.next();
    const young = created.type === 'event' ? created.payload.data.checkpoint_id : undefined;
    const { session_id, checkpoint_id } = own;

    const unfit: readonly [what: string, place: unknown][] = [
      ['an unknown session', { session_id: randomUUID(), checkpoint_id }],
      [
        'a session of another caller',
        {
          session_id: theirs[0]?.session_id,
          checkpoint_id: lastCheckpoint(theirs.find((m) => m.type === 'task_failed')),
        },
      ],
      ['another capability', { session_id: other.session_id, checkpoint_id: other.checkpoint_id }],
      ['a checkpoint that is not resumable', { session_id, checkpoint_id: own.unfit }],
      ['an unknown checkpoint', { session_id, checkpoint_id: 'ckpt-01JHZZZZZZZZZZZZZZZZZZZZZZ' }],
      ['a checkpoint of another session', { session_id, checkpoint_id: other.checkpoint_id }],
      ['a session that still runs', { session_id: unfinished, checkpoint_id: young }],
      ['no session', { checkpoint_id }],
      ['no checkpoint', { session_id }],
      ['ids that are none', { session_id: 7, checkpoint_id: {} }],
      ['nothing', {}],
      ['null', null],
      ['a text', session_id],
      ['a list', [session_id, checkpoint_id]],
    ];
    const answers = new Set<string>();
    for (const [what, place] of unfit) {
      await world.submit(from(place));
      const words = await rejection(world);
      expect([what, words.reason_code]).toEqual([what, 'invalid_input']);
      answers.add(JSON.stringify(words));
    }
    expect([...answers]).toHaveLength(1);
    expect(ran).toEqual([]);
    // And yet: the one that fits is continued.
    await world.submit(from({ session_id, checkpoint_id }));
    await world.started();
    expect(tell(await world.next())).toBe('task_completed');
    await world.hearOut();
    await world.abort(unfinished);
    await world.hearOut();
  });

  verifies(['resume/1', 'P9'], 'is not in force where the capability does not declare it', async () => {
    await using world = await World.create(stack());
    const lives: unknown[] = [];
    await world.serve(async (task, run) => {
      lives.push(run.resumedFrom);
      return interrupted(task, run);
    });
    const { session_id, checkpoint_id } = await interrupt(world);
    await world.submit(from({ session_id, checkpoint_id }));
    const accepted = await world.next();
    expect(tell(accepted)).toBe('task_accepted');
    expect(accepted.payload).not.toHaveProperty('extensions');
    await world.hearOut();
    expect(lives).toEqual([undefined, undefined]);
    await world.submit(from({ session_id, checkpoint_id, required: true }));
    expect((await rejection(world)).reason_message).toBe('/payload/extensions requires resume/1');
    expect(lives).toHaveLength(2);
  });
});
