import { expect } from 'vitest';
import { acceptKnownCallers, type Executor, TaskFailure, type TaskResult } from '../../callee/index.ts';
import type { TaskCompletedPayload, TaskFailedPayload, TaskSubmitPayload } from '../../schemas/types.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { type Heard, TASK, tell, World } from '../support/world.ts';

const MINUTE = 60_000;
const CHECKSUM = `sha256:${'a'.repeat(64)}`;
const CURVE = { name: 'Curve', type: 'text/csv', uri: 'file:///curve.csv', size_bytes: 12, checksum: CHECKSUM };

/** The result of the next session that ends. */
async function result(world: World): Promise<Heard & { payload: TaskCompletedPayload | TaskFailedPayload }> {
  for (;;) {
    const message = await world.next();
    if (message.type !== 'task_completed' && message.type !== 'task_failed') continue;
    await world.hearOut();
    return message;
  }
}

async function failure(world: World, payload: Partial<TaskSubmitPayload> = {}): Promise<TaskFailedPayload> {
  await world.submit(payload);
  const message = await result(world);
  if (message.type !== 'task_failed') throw new Error(`Expected a failure, heard ${tell(message)}`);
  return message.payload;
}

describeOnStacks('what a failed task leaves', (stack) => {
  verifies('HCP-127', 'is told: its newest checkpoint, what it has so far and its artifacts', async () => {
    await using world = await World.create(stack());
    const ids: string[] = [];
    await world.serve(async (_, run) => {
      for (const resumable of [true, false])
        ids.push(await run.checkpoint({}, { description: 'on the way', resumable }));
      const partialOutputs = { yields: [0.5] };
      throw new TaskFailure('resource_unavailable', 'No sample left', {
        partialOutputs,
        artifacts: [CURVE],
        details: { phase: 'loading', step: 3, recoverable: true },
      });
    });
    expect(await failure(world)).toMatchObject({
      error_code: 'resource_unavailable',
      error_details: { phase: 'loading', step: 3, recoverable: true, last_checkpoint: ids[1] },
      partial_outputs: { yields: [0.5] },
      artifacts: [CURVE],
      execution_summary: { checkpoints_created: 2 },
    });
  });

  verifies(['HCP-127', 'V-85'], 'is told whatever it failed of', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const ids: string[] = [];
    const { promise: waiting, resolve: tellWaiting } = Promise.withResolvers<void>();
    const executor: Executor = async (task, run) => {
      ids.push(await run.checkpoint({}, { description: 'half' }));
      if (task.inputs.wait) {
        tellWaiting();
        return untilStopped(task, run);
      }
      if (task.inputs.act) await run.guard.act('press');
      return { outputs: { yield: 1 } };
    };
    const callee = await world.callee({ clock });
    callee.capability(TASK, executor, { envelope: { prohibited_actions: ['press'] } });
    await callee.start();
    const unexpected = await failure(world, { expected_output: { required_fields: ['purity'] } });
    const violation = await failure(world, { inputs: { act: true } });
    await world.submit({ inputs: { wait: true }, constraints: { max_duration: 'PT1M' } });
    await waiting;
    clock.advance(MINUTE);
    const { payload: late } = await result(world);
    for (const [index, [code, told]] of (
      [
        ['execution_error', unexpected],
        ['safety_violation', violation],
        ['timeout', late],
      ] as const
    ).entries()) {
      expect(told).toMatchObject({ error_code: code, error_details: { last_checkpoint: ids[index] } });
    }
  });

  verifies('HCP-127', 'has no checkpoint where there is none', async () => {
    await using world = await World.create(stack());
    await world.serve(async () => Promise.reject(new Error('Too hot')));
    const failed = await failure(world);
    expect(failed.error_details).toEqual({});
    expect(failed).not.toHaveProperty('partial_outputs');
    expect(failed).not.toHaveProperty('artifacts');
  });
});

describeOnStacks('outputs that are not what was promised', (stack) => {
  verifies(['V-85', 'HCP-126', 'D-38'], 'are told as partial ones, whoever expected something else', async () => {
    await using world = await World.create(stack());
    const outputs = { purity: 7, note: 'é' };
    const output_schema = { type: 'object', properties: { purity: { maximum: 10 } } };
    const { executor, give } = giving();
    await world.serve(executor, {}, { output_schema });
    const cases: readonly [TaskSubmitPayload['expected_output'], Record<string, unknown>][] = [
      [{ required_fields: ['purity', 'yield'] }, outputs],
      [{ schema: { properties: { purity: { maximum: 1 } } } }, outputs],
      [{ required_fields: ['purity'], schema: { required: ['yield'] } }, outputs],
      [undefined, { purity: 11 }],
      [{ required_fields: ['purity'], schema: {} }, { purity: 11 }],
    ];
    for (const [expected_output, given] of cases) {
      give({ outputs: given, artifacts: [CURVE] });
      const failed = await failure(world, expected_output && { expected_output });
      expect(failed).toMatchObject({
        error_code: 'execution_error',
        error_message: expect.stringMatching(/^\/outputs/),
        error_details: { phase: 'output_validation' },
      });
      expect([failed.partial_outputs, failed.artifacts]).toEqual([given, [CURVE]]);
    }
    give({ outputs });
    await world.submit({ expected_output: { required_fields: ['purity'], schema: { required: ['note'] } } });
    expect((await result(world)).payload).toMatchObject({ outputs });
  });

  verifies(['HCP-126', 'HCP-007'], 'may be artifacts: they are not sent, and the callee goes on', async () => {
    await using world = await World.create(stack());
    const { executor, give } = giving();
    await world.serve(executor);
    const malformed: unknown[] = [
      [{ ...CURVE, uri: undefined }],
      [CURVE, { ...CURVE, size_bytes: -1 }],
      [{ ...CURVE, size_bytes: 1.5 }],
      [{ ...CURVE, checksum: 7 }],
      [{ ...CURVE, name: null }],
      [null],
      ['curve.csv'],
      [{ ...CURVE, more: 10n }],
      'curve.csv',
      7,
      { 0: CURVE, length: 1 },
      null,
    ];
    for (const artifacts of malformed) {
      give({ outputs: { yield: 1 }, artifacts } as TaskResult);
      const failed = await failure(world);
      const { error_code, error_details, partial_outputs } = failed;
      expect([error_code, error_details?.phase, failed.artifacts]).toEqual([
        'execution_error',
        'output_validation',
        undefined,
      ]);
      // What is right with the result is told.
      if (Array.isArray(artifacts)) expect(partial_outputs).toEqual({ yield: 1 });
    }
    give({ outputs: { yield: 1 }, artifacts: [CURVE] });
    await world.submit();
    expect((await result(world)).payload).toMatchObject({ outputs: { yield: 1 }, artifacts: [CURVE] });
  });
});

/** An executor that returns what it is given. */
function giving(): { readonly executor: Executor; readonly give: (result: TaskResult) => void } {
  let next: TaskResult = { outputs: {} };
  return {
    executor: async () => next,
    give: (result) => {
      next = result;
    },
  };
}

describeOnStacks('the summary of an execution', (stack) => {
  const envelope = { parameters: { speed: { max: 5, unit: 'm/s', hard_limit: false } } };

  /** Says one thing of each kind that counts, and some that do not. */
  const eventful: Executor = async (task, run) => {
    await run.checkpoint({}, { description: 'a' });
    await run.warning({ code: 'low_battery', message: 'Low' });
    await expect(run.warning({ code: 7 as never, message: 'no code' })).rejects.toThrow();
    await run.guard.act('move', { speed: 6 });
    await run.progress({ stage: 'moving', message: 'On' });
    await run.checkpoint({}, { description: 'b', resumable: false });
    if (task.inputs.fail) throw new Error('Too fast');
    return { outputs: {} };
  };
  const counted = {
    checkpoints_created: 2,
    warnings: ['low_battery', 'safety_limit'],
    risk_events: ['speed would be 6 m/s, allowed are 5 m/s at most'],
  };

  verifies('HCP-132', 'counts what happened, in success and in failure', async () => {
    await using world = await World.create(stack());
    const callee = await world.callee();
    await callee.capability(TASK, eventful, { envelope }).start();
    for (const inputs of [{}, { fail: true }]) {
      await world.submit({ inputs });
      const { execution_summary } = (await result(world)).payload;
      expect(execution_summary).toEqual({ ...counted, duration: expect.stringMatching(/^PT/) });
    }
  });

  verifies('HCP-132', 'does not count the time it took somebody to approve the task', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const policy = acceptKnownCallers({ [world.callerId]: { riskLimit: 'R3' } });
    const callee = await world.serve(
      async () => {
        clock.advance(MINUTE);
        return { outputs: {} };
      },
      { clock, policy, prefetch: 1 },
      { safety: { risk_ceiling: 'R3', requires_human_approval: true, involves_physical_resources: false } },
    );
    await world.submit();
    await world.echo();
    const [approval] = await callee.approvals.list();
    clock.advance(60 * MINUTE);
    await callee.approvals.approve(String(approval?.sessionId), { approver: 'Ada' });
    expect((await result(world)).payload.execution_summary).toMatchObject({ duration: 'PT1M' });
  });

  verifies('HCP-132', 'tells how long it took, pauses included', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    await world.serve(
      async (_, run) => {
        clock.advance(90 * MINUTE);
        await run.pause();
        clock.advance(30 * MINUTE);
        await run.resume();
        clock.advance(1500);
        return { outputs: {} };
      },
      { clock },
    );
    await world.submit();
    expect((await result(world)).payload.execution_summary).toMatchObject({
      duration: 'PT2H1.5S',
      checkpoints_created: 0,
      warnings: [],
    });
  });

  verifies(['HCP-132', 'V-16'], 'is the same when the callee was restarted meanwhile', async () => {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const { promise: half, resolve: tellHalf } = Promise.withResolvers<void>();
    const executor: Executor = async (task, run) => {
      if (run.resumedFrom === undefined) {
        await run.checkpoint({}, { description: 'a' });
        await run.warning({ code: 'low_battery', message: 'Low' });
        clock.advance(10 * MINUTE);
        tellHalf();
        return untilStopped(task, run);
      }
      clock.advance(5 * MINUTE);
      await run.guard.act('move', { speed: 6 });
      await run.checkpoint({}, { description: 'b' });
      return { outputs: {} };
    };
    const serve = async () => {
      const callee = await world.callee({ clock });
      await callee.capability(TASK, executor, { envelope }).start();
      return callee;
    };
    const first = await serve();
    await world.submit();
    await half;
    await first.close();
    clock.advance(20 * MINUTE);
    await serve();
    expect((await result(world)).payload.execution_summary).toEqual({ ...counted, duration: 'PT35M' });
  });
});
