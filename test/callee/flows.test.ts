import { expect } from 'vitest';
import { acceptKnownCallers, TaskFailure } from '../../callee/index.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const START = ['task_accepted', 'E1 session_created', 'E2 PENDING→RUNNING safety_check_passed'];

describeOnStacks('valid flows of a callee', (stack) => {
  verifies(
    ['V-01', 'HCP-105', 'HCP-106', 'HCP-107', 'HCP-108', 'HCP-110', 'HCP-111'],
    'a task reports once and returns its outputs',
    async () => {
      await using world = await World.create(stack());
      await world.serve(async (task, run) => {
        await run.progress({ stage: 'counting', percent: 50, message: `to ${task.inputs.to}` });
        return { outputs: { counted: task.inputs.to } };
      });
      const messageId = await world.submit({ inputs: { to: 3 } });
      const [accepted] = [await world.next()];
      expect(accepted).toMatchObject({
        type: 'task_accepted',
        payload: {
          risk_level: 'R1',
          data_classification: 'T2',
          safety_envelope: {},
          constraints: { max_duration: 'PT4H', abort_timeout: 'PT5M' },
          in_reply_to: messageId,
        },
      });
      const heard = await world.hear(6);
      expect(heard.map(tell)).toEqual([
        ...START.slice(1),
        'E3 progress',
        'task_completed',
        'E4 RUNNING→COMPLETED task_completed',
        'E5 closed COMPLETED task_completed',
      ]);
      expect(heard[3]).toMatchObject({
        payload: { outputs: { counted: 3 }, execution_summary: { checkpoints_created: 0, warnings: [] } },
      });
      expect(new Set(heard.map(({ session_id }) => session_id))).toEqual(new Set([accepted?.session_id]));
    },
  );

  verifies(['V-02', 'HCP-128'], 'an executor that throws fails its task', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => {
      throw new Error('The furnace is cold');
    });
    await world.submit();
    const heard = await world.hear(6);
    expect(heard.map(tell)).toEqual([
      ...START,
      'task_failed execution_error',
      'E3 RUNNING→FAILED execution_error',
      'E4 closed FAILED execution_error',
    ]);
    expect(heard[3]).toMatchObject({ payload: { error_message: 'The furnace is cold' } });
  });

  verifies(['HCP-127', 'HCP-128'], 'an executor names its failure and what it has so far', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => {
      throw new TaskFailure('resource_unavailable', 'No sample left', {
        partialOutputs: { done: 2 },
        details: { phase: 'loading', step: 3 },
      });
    });
    await world.submit();
    const failed = (await world.hear(4)).at(-1);
    expect(failed).toMatchObject({
      type: 'task_failed',
      payload: {
        error_code: 'resource_unavailable',
        partial_outputs: { done: 2 },
        error_details: { phase: 'loading', step: 3 },
      },
    });
  });

  verifies('V-03', 'a task rated above the limit of its caller is rejected, without an event', async () => {
    await using world = await World.create(stack());
    const policy = acceptKnownCallers({ [world.callerId]: { riskLimit: 'R3' } });
    await world.serve(
      async () => ({ outputs: {} }),
      { policy },
      {
        safety: { risk_ceiling: 'R4', requires_human_approval: false, involves_physical_resources: true },
      },
    );
    const messageId = await world.submit();
    expect(await world.next()).toMatchObject({
      type: 'task_rejected',
      session_id: null,
      payload: { reason_code: 'risk_too_high', assessed_risk_level: 'R4', in_reply_to: messageId },
    });
    expect(world.received[0]?.route.routingKey).toBe(`${world.callerId}.none.task_rejected`);
    await world.echo();
  });

  verifies('V-04', 'a task pauses, resumes and completes', async () => {
    await using world = await World.create(stack());
    await world.serve(async (_, run) => {
      await run.pause();
      await run.resume();
      return { outputs: {} };
    });
    await world.submit();
    expect(await world.hearOut()).toEqual([
      ...START,
      'E3 RUNNING→PAUSED paused_by_callee',
      'E4 PAUSED→RUNNING resumed_by_callee',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ]);
  });

  verifies(['V-05', 'HCP-116', 'HCP-127'], 'a failure names the last checkpoint', async () => {
    await using world = await World.create(stack());
    await world.serve(async (_, run) => {
      await run.checkpoint({ done: 1 }, { description: 'after one' });
      throw new Error('Too hot');
    });
    await world.submit();
    const heard = await world.hear(5);
    expect(heard.slice(3).map(tell)).toEqual(['E3 checkpoint_created', 'task_failed execution_error']);
    const [created, failed] = heard.slice(3) as unknown as { payload: never }[];
    const { data } = (created as { payload: { data: Record<string, unknown> } }).payload;
    expect(data).toMatchObject({ resumable: true, description: 'after one' });
    expect(failed).toMatchObject({
      payload: {
        error_details: { last_checkpoint: data.checkpoint_id },
        execution_summary: { checkpoints_created: 1 },
      },
    });
  });

  verifies(['V-08', 'HCP-120'], 'a task that takes longer than it may fails at its deadline', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { promise: working, resolve: tellWorking } = Promise.withResolvers<void>();
    const { promise: stopped, resolve: tellStopped } = Promise.withResolvers<unknown>();
    await world.serve(
      (_, run) =>
        new Promise((_resolve, reject) => {
          tellWorking();
          run.signal.addEventListener('abort', () => {
            tellStopped(run.signal.reason);
            reject(run.signal.reason);
          });
        }),
      { clock },
    );
    await world.submit({ constraints: { max_duration: 'PT1S' } });
    await world.started();
    await working;
    clock.advance(999);
    expect(world.unheard).toBe(0);
    clock.advance(1);
    expect(await world.hearOut()).toEqual([
      'task_failed timeout',
      'E3 RUNNING→FAILED timeout',
      'E4 closed FAILED timeout',
    ]);
    expect(await stopped).toMatchObject({ code: 'session_closed' });
  });

  verifies(['V-09', 'HCP-120'], 'a paused task fails at its deadline by way of RUNNING', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    await world.serve(
      async (_, run) => {
        await run.pause();
        return new Promise(() => {});
      },
      { clock },
    );
    await world.submit({ constraints: { max_duration: 'PT1S' } });
    expect((await world.hear(4)).map(tell).at(-1)).toBe('E3 RUNNING→PAUSED paused_by_callee');
    clock.advance(1000);
    expect(await world.hearOut()).toEqual([
      'E4 PAUSED→RUNNING timeout',
      'task_failed timeout',
      'E5 RUNNING→FAILED timeout',
      'E6 closed FAILED timeout',
    ]);
  });

  verifies('V-10', 'the least of the limits of task, capability and callee counts, and is told', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const constraints = { max_duration: 'PT4H' };
    await world.serve(() => new Promise(() => {}), { clock, maxDuration: 'P30D' }, { constraints });
    await world.submit({ constraints: { max_duration: 'PT72H' } });
    const [accepted] = await world.hear(3);
    expect(accepted).toMatchObject({ payload: { constraints: { max_duration: 'PT4H' } } });
    clock.advance(4 * 3_600_000 - 1);
    expect(world.unheard).toBe(0);
    clock.advance(1);
    expect((await world.hearOut())[0]).toBe('task_failed timeout');
  });

  verifies(['V-11', 'V-12'], 'two tasks at once are two sessions, each counted from 1 and in order', async () => {
    await using world = await World.create(stack());
    await world.serve(async ({ inputs }, run) => {
      for (let i = 0; i < 20; i++) await run.progress({ stage: String(inputs.name), message: String(i) });
      return { outputs: { name: inputs.name } };
    });
    const ids = [await world.submit({ inputs: { name: 'a' } }), await world.submit({ inputs: { name: 'b' } })];
    const heard = await world.hear(2 * 26);
    const sessions = new Map<unknown, typeof heard>();
    for (const message of heard)
      sessions.set(message.session_id, [...(sessions.get(message.session_id) ?? []), message]);
    expect(sessions.size).toBe(2);
    for (const messages of sessions.values()) {
      const sequences = messages.flatMap((message) => (message.type === 'event' ? [message.payload.sequence] : []));
      expect(sequences).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
      const [accepted] = messages;
      expect(accepted?.type === 'task_accepted' && ids.includes(accepted.payload.in_reply_to ?? '')).toBe(true);
    }
  });

  verifies('HCP-132', 'a result tells how long it took and what it warned of', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { promise: warned, resolve: tellWarned } = Promise.withResolvers<void>();
    const { promise: proceed, resolve: tellProceed } = Promise.withResolvers<void>();
    await world.serve(
      async (_, run) => {
        await run.warning({ code: 'door_open', message: 'The door is open' });
        tellWarned();
        await proceed;
        return { outputs: {} };
      },
      { clock },
    );
    await world.submit();
    await warned;
    clock.advance(90_000);
    tellProceed();
    const completed = (await world.hear(5)).at(-1);
    expect(completed).toMatchObject({
      payload: { execution_summary: { duration: 'PT1M30S', warnings: ['door_open'] } },
    });
  });
});
