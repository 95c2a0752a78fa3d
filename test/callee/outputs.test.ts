import { expect } from 'vitest';
import { type Executor, TaskFailure } from '../../callee/index.ts';
import type { Capability, TaskFailedPayload, TaskSubmitPayload } from '../../schemas/types.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

/** Runs one task that must fail, and answers what it said of it. */
async function failureOf(
  stack: Stack,
  executor: Executor,
  payload: Partial<TaskSubmitPayload> = {},
  declaration: Partial<Capability> = {},
): Promise<TaskFailedPayload> {
  await using world = await World.create(stack);
  await world.serve(executor, {}, declaration);
  await world.submit(payload);
  await world.started();
  const failed = await world.next();
  if (failed.type !== 'task_failed') throw new Error(`Expected a failure, heard ${tell(failed)}`);
  const { error_code: code } = failed.payload;
  expect(await world.hearOut()).toEqual([`E3 RUNNING→FAILED ${code}`, `E4 closed FAILED ${code}`]);
  await world.echo();
  return failed.payload;
}

const returning =
  (outputs: unknown): Executor =>
  async () => ({ outputs: outputs as Record<string, unknown> });

describeOnStacks('results of a task', (stack) => {
  verifies(['V-85', 'HCP-126'], 'outputs without a required field are no completion', async () => {
    const expected_output = { required_fields: ['yield', 'purity'] };
    const failed = await failureOf(stack(), returning({ yield: 0.9, toString: 1 }), { expected_output });
    expect(failed).toMatchObject({
      error_code: 'execution_error',
      error_message: '/outputs/purity is missing, which the caller requires',
      error_details: { phase: 'output_validation' },
      partial_outputs: { yield: 0.9 },
    });
  });

  verifies(['V-85', 'HCP-126'], 'a required field is one the outputs have of their own', async () => {
    const expected_output = { required_fields: ['constructor'] };
    expect((await failureOf(stack(), returning({}), { expected_output })).error_code).toBe('execution_error');
  });

  verifies('HCP-126', 'outputs that break the schema of the caller are no completion', async () => {
    const schema = { properties: { purity: { type: 'number', maximum: 1 } } };
    const failed = await failureOf(stack(), returning({ purity: 7 }), { expected_output: { schema } });
    expect(failed).toMatchObject({
      error_code: 'execution_error',
      error_message: expect.stringContaining('/outputs/purity'),
      error_details: { phase: 'output_validation' },
      partial_outputs: { purity: 7 },
    });
  });

  verifies('HCP-126', 'outputs that break the promise of the capability are no completion', async () => {
    const output_schema = { type: 'object', required: ['purity'] };
    const failed = await failureOf(stack(), returning({}), {}, { output_schema });
    expect(failed).toMatchObject({ error_code: 'execution_error', error_details: { phase: 'output_validation' } });
  });

  verifies('HCP-126', 'a result that is none is no completion', async () => {
    for (const result of [undefined, null, 'done', {}, { outputs: null }, { outputs: [] }, { outputs: 'done' }]) {
      const failed = await failureOf(stack(), async () => result as never);
      expect(failed).toMatchObject({ error_code: 'execution_error', error_details: { phase: 'output_validation' } });
      expect(failed).not.toHaveProperty('partial_outputs');
    }
  });

  verifies('HCP-126', 'outputs that fit every expectation complete the task', async () => {
    await using world = await World.create(stack());
    const artifacts = [{ name: 'spectrum', type: 'text/csv', uri: 'file:///spectrum.csv', size_bytes: 12 }];
    const output_schema = { type: 'object', required: ['purity'] };
    await world.serve(async () => ({ outputs: { purity: 1 }, artifacts }), {}, { output_schema });
    const schema = { type: 'object', properties: { purity: { const: 1 } } };
    await world.submit({ expected_output: { required_fields: ['purity'], schema } });
    await world.started();
    expect(await world.next()).toMatchObject({
      type: 'task_completed',
      payload: { outputs: { purity: 1 }, artifacts },
    });
  });

  verifies(['HCP-127', 'HCP-128'], 'a failure that knows itself is told in full', async () => {
    const artifacts = [{ name: 'log', type: 'text/plain', uri: 'file:///log.txt' }];
    const failed = await failureOf(stack(), async () => {
      throw new TaskFailure('resource_unavailable', 'No sample left', {
        partialOutputs: { done: 2 },
        artifacts,
        details: { phase: 'loading', step: 3, recoverable: true },
        cause: new Error('Not for the caller'),
      });
    });
    expect(failed).toMatchObject({
      error_code: 'resource_unavailable',
      error_message: 'No sample left',
      error_details: { phase: 'loading', step: 3, recoverable: true },
      partial_outputs: { done: 2 },
      artifacts,
    });
    expect(JSON.stringify(failed)).not.toContain('Not for the caller');
  });

  verifies('HCP-128', 'whatever is thrown fails the task', async () => {
    for (const thrown of [undefined, 'a text', { message: 'an object' }, new Error('')]) {
      const failed = await failureOf(stack(), () => Promise.reject(thrown));
      expect(failed).toMatchObject({ error_code: 'execution_error', error_message: 'The task failed' });
    }
    const synchronous: Executor = () => {
      throw new Error('Before it began');
    };
    expect(await failureOf(stack(), synchronous)).toMatchObject({ error_message: 'Before it began' });
  });

  verifies('HCP-128', 'a failure that no message can carry is told in plain words', async () => {
    const unsayable = [
      new TaskFailure(7 as never, 'A code that is none'),
      new TaskFailure('input_error', 'Outputs that are none', { partialOutputs: { count: 10n } }),
      new TaskFailure('input_error', 'Details that are none', { details: { step: 'three' as never } }),
      new TaskFailure('input_error', 'Artifacts that are none', { artifacts: [{ name: 'x' } as never] }),
    ];
    for (const error of unsayable) {
      const failed = await failureOf(stack(), () => Promise.reject(error));
      expect(failed).toMatchObject({
        error_code: 'execution_error',
        error_message: expect.stringContaining('not fit'),
      });
    }
  });

  verifies('HCP-128', 'a long story is cut short, its code stays', async () => {
    const error = new TaskFailure('input_error', `Long story: ${'x'.repeat(300_000)}`, { partialOutputs: { done: 2 } });
    const failed = await failureOf(stack(), () => Promise.reject(error));
    expect(failed).toMatchObject({ error_code: 'input_error', partial_outputs: { done: 2 } });
    expect(failed.error_message).toMatch(/^Long story: x+…$/);
  });
});

describeOnStacks('cleaning up', (stack) => {
  const order: Executor = async ({ inputs }, run) => {
    const steps = inputs.steps as string[];
    run.onCleanup(() => void steps.push(`first given, ${run.state}`));
    run.onCleanup(async () => void steps.push(`last given, ${run.state}`));
    return { outputs: {} };
  };

  /** Runs one task with `end` behind two cleanups; answers what they did by the time its callee is closed. */
  async function stepsAfter(end: Executor, advanceMs = 0): Promise<string[]> {
    await using world = await World.create(stack());
    const clock = new ManualClock();
    const steps: string[] = [];
    const callee = await world.serve(
      async (task, run) => {
        await order({ ...task, inputs: { steps } }, run);
        return end(task, run);
      },
      { clock },
    );
    await world.submit({ constraints: { max_duration: 'PT1S' } });
    await world.started();
    clock.advance(advanceMs);
    await world.hearOut();
    await callee.close();
    return steps;
  }

  verifies('HCP-122', 'is done after a failure, the last given first', async () => {
    const steps = await stepsAfter(() => Promise.reject(new Error('Too hot')));
    expect(steps).toEqual(['last given, FAILED', 'first given, FAILED']);
  });

  verifies('HCP-122', 'is done after a time-out, when the work has stopped', async () => {
    expect(await stepsAfter(untilStopped, 1000)).toEqual(['last given, FAILED', 'first given, FAILED']);
  });

  verifies('HCP-122', 'is not done after a success', async () => {
    expect(await stepsAfter(async () => ({ outputs: {} }))).toEqual([]);
  });

  verifies(['V-14', 'HCP-123'], 'that fails with a long story still closes an aborted session', async () => {
    await using world = await World.create(stack());
    await world.serve((task, run) => {
      run.onCleanup(() => {
        throw new Error(`Long story: ${'x'.repeat(300_000)}`);
      });
      return untilStopped(task, run);
    });
    await world.submit();
    const { sessionId } = await world.started();
    await world.abort(sessionId);
    expect((await world.hearOut()).at(-1)).toBe('E6 closed ABORTED cleanup_failed');
  });
});
