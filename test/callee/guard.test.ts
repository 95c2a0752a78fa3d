import { expect } from 'vitest';
import { acceptKnownCallers, type Executor, type KeyRing, type Procedure, type Run } from '../../callee/index.ts';
import { createKeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { buildMessage } from '../../shared/messages/build.ts';
import { untilStopped } from '../support/executors.ts';
import { audited, auditKinds, serveFurnace } from '../support/furnace.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

const FAILED = [
  'task_failed safety_violation',
  'E3 RUNNING→FAILED safety_violation',
  'E4 closed FAILED safety_violation',
];

/** What an action came to: `done`, or the code it was refused with. */
async function outcome(action: Promise<void>): Promise<unknown> {
  return action.then(
    () => 'done',
    (error) => error.code ?? error.name,
  );
}

/** Serves one task and runs it to its end; answers what was heard behind its start. */
async function runTask(world: World, executor: Executor, options: Parameters<typeof serveFurnace>[2] = {}) {
  const callee = await serveFurnace(world, executor, options);
  await world.submit();
  const { sessionId } = await world.started();
  const heard = [];
  do heard.push(await world.next());
  while (!tell(heard.at(-1) as never).includes('closed'));
  return { callee, sessionId, heard, told: heard.map(tell) };
}

/** Real keys whose next verification waits until it is let go. */
async function heldKeys(): Promise<KeyRing & { hold(): { reached: Promise<void>; release: () => void } }> {
  const ring = await createKeyRing([await generateKey()]);
  let gate: (() => Promise<void>) | undefined;
  return {
    ...ring,
    async verify(token, typ) {
      const held = gate;
      gate = undefined;
      await held?.();
      return ring.verify(token, typ);
    },
    hold() {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      gate = () => {
        reached.resolve();
        return released.promise;
      };
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

async function command(world: World, type: 'x-pause' | 'x-resume', sessionId: string): Promise<void> {
  const draft =
    type === 'x-pause' ? ({ type, payload: { mode: 'immediate' } } as const) : ({ type, payload: {} } as const);
  const built = buildMessage({ ...draft, sessionId, senderId: world.callerId });
  await world.send(built.body, built.properties);
}

describeOnStacks('the guard of a task', (stack) => {
  verifies(['V-26', 'HCP-310'], 'warns beyond a soft limit and lets the work go on', async () => {
    await using world = await World.create(stack());
    const { heard, told, sessionId } = await runTask(world, async (_, run) => {
      await run.guard.act('press', { pressure: 4 });
      await run.guard.act('press', { pressure: 6 });
      await run.guard.act('press', { pressure: 7 });
      return { outputs: {} };
    });
    expect(told).toEqual([
      'E3 warning',
      'E4 warning',
      'task_completed',
      'E5 RUNNING→COMPLETED task_completed',
      'E6 closed COMPLETED task_completed',
    ]);
    const message = 'pressure would be 6 bar, allowed are 5 bar at most';
    expect(heard[0]).toMatchObject({
      payload: { data: { code: 'safety_limit', message, details: { action: 'press', parameter: 'pressure' } } },
    });
    expect(heard[2]).toMatchObject({
      payload: {
        execution_summary: {
          warnings: ['safety_limit', 'safety_limit'],
          risk_events: [message, 'pressure would be 7 bar, allowed are 5 bar at most'],
        },
      },
    });
    expect(await auditKinds(world, sessionId)).toEqual(['decision', 'ended']);
  });

  verifies(
    ['V-27', 'HCP-310', 'HCP-312'],
    'beyond a hard limit the action is not done, the procedure runs, and the session fails, on record',
    async () => {
      await using world = await World.create(stack());
      const done: string[] = [];
      const violations: unknown[] = [];
      const cool: Procedure = (violation, run) => {
        violations.push(violation);
        done.push(`cool in ${run.state}, ${run.signal.aborted ? 'stopped' : 'not stopped'}`);
      };
      const { heard, told, sessionId } = await runTask(
        world,
        async (_, run) => {
          await run.guard.act('heat', { temperature: 900 });
          done.push('heated to 900');
          await run.guard.act('heat', { temperature: 1001 });
          done.push('heated to 1001');
          return { outputs: {} };
        },
        { procedures: { cool } },
      );
      const message = 'temperature would be 1001 celsius, allowed are 1000 celsius at most';
      expect(told).toEqual(FAILED);
      expect(done).toEqual(['heated to 900', 'cool in RUNNING, stopped']);
      expect(violations).toEqual([{ action: 'heat', condition: 'temperature', message }]);
      expect(heard[0]).toMatchObject({
        payload: {
          error_message: message,
          error_details: { recoverable: false, action: 'heat', condition: 'temperature' },
        },
      });
      const records = await audited(world.store, world.calleeId, sessionId);
      expect(records.map(({ kind }) => kind).toSorted()).toEqual(['decision', 'emergency', 'ended', 'violation']);
      const detailsOf = (wanted: string) => records.find(({ kind }) => kind === wanted)?.details;
      expect(detailsOf('violation')).toMatchObject({
        ...{ caller_id: world.callerId, capability: 'test.task', risk_level: 'R1', result: 'stopped' },
        ...{ action: 'heat', condition: 'temperature', message },
        inputs_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      expect(detailsOf('emergency')).toMatchObject({ procedure: 'cool', result: 'done' });
      expect(detailsOf('ended')).toMatchObject({ state: 'FAILED', reason: 'safety_violation' });
    },
  );

  verifies('V-27', 'many actions beyond their limits at once make one emergency and one end', async () => {
    await using world = await World.create(stack());
    let procedures = 0;
    const count: Procedure = () => void procedures++;
    const outcomes: unknown[] = [];
    const { told, sessionId } = await runTask(
      world,
      async (_, run) => {
        const actions = [
          ...Array.from({ length: 5 }, (_unused, i) => run.guard.act('heat', { temperature: 2000 + i })),
          run.guard.act('open_door'),
          run.guard.act('heat', { temperature: 20 }, { risk: 'R5' }),
        ];
        outcomes.push(...(await Promise.all(actions.map(outcome))));
        return { outputs: {} };
      },
      { procedures: { cool: count, shut_down: count } },
    );
    expect(told).toEqual(FAILED);
    expect([procedures, outcomes]).toEqual([1, Array(7).fill('safety_violation')]);
    expect((await auditKinds(world, sessionId)).filter((kind) => /violation|emergency/.test(kind))).toHaveLength(2);
  });

  verifies(
    'V-27',
    'an executor that swallows the refusal cannot act again, and its result does not count',
    async () => {
      await using world = await World.create(stack());
      let procedures = 0;
      const outcomes: unknown[] = [];
      const { told } = await runTask(
        world,
        async (_, run) => {
          outcomes.push(await outcome(run.guard.act('heat', { temperature: 2000 })));
          outcomes.push(await outcome(run.guard.act('heat', { temperature: 2000 })));
          outcomes.push(await outcome(run.guard.act('heat', { temperature: 20 })));
          return { outputs: { fine: true } };
        },
        { procedures: { cool: () => void procedures++ } },
      );
      expect(told).toEqual(FAILED);
      expect([procedures, outcomes[0]]).toEqual([1, 'safety_violation']);
      expect(outcomes).not.toContain('done');
    },
  );

  verifies('V-27', 'an executor that does not wait for the answer does not complete', async () => {
    await using world = await World.create(stack());
    const cooling = Promise.withResolvers<void>();
    const cooled = Promise.withResolvers<void>();
    const refused = Promise.withResolvers<unknown>();
    await serveFurnace(
      world,
      async (_, run) => {
        refused.resolve(outcome(run.guard.act('heat', { temperature: 2000 })));
        await cooling.promise;
        return { outputs: {} };
      },
      {
        procedures: {
          cool: () => {
            cooling.resolve();
            return cooled.promise;
          },
        },
      },
    );
    await world.submit();
    await world.started();
    await cooling.promise;
    await world.echo();
    cooled.resolve();
    expect(await world.hearOut()).toEqual(FAILED);
    expect(await refused.promise).toBe('safety_violation');
  });

  verifies(
    'HCP-308',
    'an action that was being judged when its session completed is not done, nor an emergency',
    async () => {
      await using world = await World.create(stack());
      const keys = await heldKeys();
      const gate = Promise.withResolvers<ReturnType<typeof keys.hold>>();
      const refused = Promise.withResolvers<unknown>();
      let emergencies = 0;
      await serveFurnace(
        world,
        async (_, run) => {
          gate.resolve(keys.hold());
          refused.resolve(outcome(run.guard.act('heat', { temperature: 2000 })));
          return { outputs: {} };
        },
        { keys, procedures: { cool: () => void emergencies++ } },
      );
      await world.submit();
      const { sessionId } = await world.started();
      expect((await world.hearOut()).at(-1)).toBe('E4 closed COMPLETED task_completed');
      (await gate.promise).release();
      expect(await refused.promise).toMatch(/^session_(closed|illegal_transition)$/);
      expect([emergencies, await auditKinds(world, sessionId)]).toEqual([0, ['decision', 'ended']]);
    },
  );

  verifies(['V-27', 'HCP-310'], 'a prohibited action ends the session like a broken limit', async () => {
    await using world = await World.create(stack());
    const conditions: string[] = [];
    const { heard, told } = await runTask(
      world,
      async (_, run) => {
        await run.guard.act('open_door');
        return { outputs: {} };
      },
      { procedures: { shut_down: ({ condition }) => void conditions.push(condition) } },
    );
    expect(told).toEqual(FAILED);
    expect(heard[0]).toMatchObject({ payload: { error_message: 'open_door is prohibited' } });
    expect(conditions).toEqual(['open_door']);
  });

  verifies('HCP-308', 'an action riskier than what was approved is not done', async () => {
    await using world = await World.create(stack());
    const outcomes: unknown[] = [];
    const { heard, told } = await runTask(
      world,
      async (_, run) => {
        outcomes.push(await outcome(run.guard.act('mix', {}, { risk: 'R2' })));
        outcomes.push(await outcome(run.guard.act('mix', {}, { risk: 'R3' })));
        return { outputs: {} };
      },
      { declaration: { safety: { ...TASK.safety, risk_ceiling: 'R2' } } },
    );
    expect(told).toEqual(FAILED);
    expect(outcomes).toEqual(['done', 'safety_violation']);
    expect(heard[0]).toMatchObject({ payload: { error_message: 'mix is rated R3, approved is R2' } });
  });

  verifies('HCP-310', 'refuses an action that cannot be judged, without ending the session', async () => {
    await using world = await World.create(stack());
    const outcomes: unknown[] = [];
    const { told } = await runTask(world, async (_, run) => {
      const act = run.guard.act as (...args: unknown[]) => Promise<void>;
      for (const name of [undefined, null, 7, '', ['open_door'], 'x'.repeat(201)])
        outcomes.push(await outcome(act(name)));
      for (const parameters of [null, 7, 'hot']) outcomes.push(await outcome(act('heat', parameters)));
      for (const risk of [null, 'R0', 'R9', 'high', 1]) outcomes.push(await outcome(act('heat', {}, { risk })));
      return { outputs: {} };
    });
    expect(outcomes).toEqual(Array(14).fill('TypeError'));
    expect(told.at(-1)).toBe('E4 closed COMPLETED task_completed');
  });

  verifies('HCP-308', 'nothing is done while the callee itself has paused the work', async () => {
    await using world = await World.create(stack());
    const outcomes: unknown[] = [];
    const { told } = await runTask(world, async (_, run) => {
      await run.pause();
      outcomes.push(await outcome(run.guard.act('heat', { temperature: 20 })));
      await run.resume();
      outcomes.push(await outcome(run.guard.act('heat', { temperature: 20 })));
      return { outputs: {} };
    });
    expect(outcomes).toEqual(['session_illegal_transition', 'done']);
    expect(told.at(-1)).toBe('E6 closed COMPLETED task_completed');
  });

  verifies('HCP-308', 'an action waits for the end of a pause that came while it was being judged', async () => {
    await using world = await World.create(stack());
    const keys = await heldKeys();
    const held = Promise.withResolvers<ReturnType<typeof keys.hold>>();
    const acted: string[] = [];
    await serveFurnace(
      world,
      async (_, run) => {
        held.resolve(keys.hold());
        await run.guard.act('heat', { temperature: 20 });
        acted.push(run.state);
        return { outputs: {} };
      },
      { keys, declaration: { extensions: ['pause/1'] } },
    );
    await world.submit({ extensions: { 'pause/1': {} } });
    const { sessionId } = await world.started();
    const { reached, release } = await held.promise;
    await reached;
    await command(world, 'x-pause', sessionId);
    expect(tell(await world.next())).toBe('E3 RUNNING→PAUSED paused_by_caller');
    release();
    await world.echo();
    expect(acted).toEqual([]);
    await command(world, 'x-resume', sessionId);
    expect((await world.hearOut()).at(-1)).toBe('E6 closed COMPLETED task_completed');
    expect(acted).toEqual(['RUNNING']);
  });

  verifies('HCP-308', 'an action that was being judged when its session was aborted is not done', async () => {
    await using world = await World.create(stack());
    const keys = await heldKeys();
    const held = Promise.withResolvers<ReturnType<typeof keys.hold>>();
    const acted = Promise.withResolvers<unknown>();
    await serveFurnace(
      world,
      async (task, run) => {
        held.resolve(keys.hold());
        acted.resolve(outcome(run.guard.act('heat', { temperature: 20 })));
        return untilStopped(task, run);
      },
      { keys },
    );
    await world.submit();
    const { sessionId } = await world.started();
    const { reached, release } = await held.promise;
    await reached;
    await world.abort(sessionId);
    expect(tell(await world.next())).toBe('E3 RUNNING→ABORTING abort_requested');
    release();
    expect(await acted.promise).toBe('session_closed');
    expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
  });

  verifies('HCP-308', 'nothing is done after the end, whatever the end was', async () => {
    await using world = await World.create(stack());
    const runs: Run[] = [];
    await serveFurnace(world, async ({ inputs }, run) => {
      runs.push(run);
      if (inputs.fails) throw new Error('It broke');
      return { outputs: {} };
    });
    for (const inputs of [{}, { fails: true }]) {
      await world.submit({ inputs });
      await world.hearOut();
    }
    for (const run of runs) expect(await outcome(run.guard.act('heat', { temperature: 20 }))).not.toBe('done');
    for (const run of runs) expect(await outcome(run.guard.act('heat', { temperature: 2000 }))).not.toBe('done');
    await world.echo(); // and nothing was said about it
  });

  verifies(
    ['HCP-122', 'HCP-310'],
    'after an abort the work cannot act, but cleaning up can, within the envelope and without asking for the token',
    async () => {
      await using world = await World.create(stack());
      const ring = await createKeyRing([await generateKey()]);
      let asked = 0;
      const keys: KeyRing = {
        ...ring,
        verify: (token, typ) => {
          asked++;
          return ring.verify(token, typ);
        },
      };
      const outcomes: unknown[] = [];
      let askedBefore = 0;
      const working = Promise.withResolvers<void>();
      await serveFurnace(
        world,
        async (task, run) => {
          await run.guard.act('heat', { temperature: 20 });
          working.resolve();
          return untilStopped(task, run).catch(async () => {
            outcomes.push(['work', await outcome(run.guard.act('heat', { temperature: 20 }))]);
            outcomes.push(['work', await outcome(run.guard.act('heat', { temperature: 2000 }))]);
            askedBefore = asked;
            throw run.signal.reason;
          });
        },
        {
          keys,
          cleanup: async (_, run) => {
            outcomes.push([run.state, await outcome(run.guard.act('heat', { temperature: 20 }))]);
            outcomes.push([run.state, await outcome(run.guard.act('heat', { temperature: 2000 }))]);
            outcomes.push([run.state, await outcome(run.guard.act('open_door'))]);
            outcomes.push([run.state, await outcome(run.guard.act('press', { pressure: 9 }))]);
          },
        },
      );
      await world.submit();
      const { sessionId } = await world.started();
      await working.promise;
      await world.abort(sessionId);
      expect(await world.hearOut()).toEqual([
        ...['E3 RUNNING→ABORTING abort_requested', 'E4 error', 'E5 error', 'E6 warning'],
        ...['E7 ABORTING→ABORTED cleanup_complete', 'E8 closed ABORTED cleanup_complete'],
      ]);
      expect((await auditKinds(world, sessionId)).toSorted()).toEqual([
        ...['abort', 'decision', 'ended', 'violation', 'violation'],
      ]);
      expect(outcomes).toEqual([
        ['work', 'session_closed'],
        ['work', 'session_closed'],
        ['ABORTING', 'done'],
        ['ABORTING', 'safety_violation'],
        ['ABORTING', 'safety_violation'],
        ['ABORTING', 'done'],
      ]);
      expect(asked).toBe(askedBefore);
    },
  );

  verifies(
    'HCP-310',
    'an action that cleaning up after a failure may not do is on record, and nothing more is said',
    async () => {
      await using world = await World.create(stack());
      const outcomes: unknown[] = [];
      const { told, sessionId } = await runTask(
        world,
        async () => {
          throw new Error('It broke');
        },
        {
          cleanup: async (_, run) => {
            outcomes.push(await outcome(run.guard.act('heat', { temperature: 20 })));
            outcomes.push(await outcome(run.guard.act('heat', { temperature: 2000 })));
            outcomes.push(await outcome(run.guard.act('press', { pressure: 9 })));
          },
        },
      );
      expect(told.at(-1)).toBe('E4 closed FAILED execution_error');
      await world.echo();
      expect(outcomes).toEqual(['done', 'safety_violation', 'done']);
      expect(await auditKinds(world, sessionId)).toEqual(['decision', 'ended', 'violation']);
    },
  );

  verifies('HCP-309', 'an envelope that the caller sends along changes nothing', async () => {
    await using world = await World.create(stack());
    await serveFurnace(
      world,
      async (_, run) => {
        await run.guard.act('heat', { temperature: 2000 });
        return { outputs: {} };
      },
      { policy: acceptKnownCallers([world.callerId]) },
    );
    const wide = { parameters: { temperature: { max: 9999 } } };
    await world.submit({ safety_envelope: wide, inputs: { safety_envelope: wide } } as never); // no field of a submit
    await world.started();
    expect(await world.hearOut()).toEqual(FAILED);
  });
});
