import { expect } from 'vitest';
import { acceptKnownCallers, type Callee, type CapabilityOptions, type Executor } from '../../callee/index.ts';
import type { Capability, Extensions, TaskSubmitPayload } from '../../schemas/types.ts';
import type { Delivery } from '../../shared/transport/transport.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { untilStopped } from '../support/executors.ts';
import { askReplay, askStatus } from '../support/inquiries.ts';
import { askPause, askResume } from '../support/pausing.ts';
import { seededRandom } from '../support/random.ts';
import { describeOnStacks, type Stack } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { type Heard, TASK, World } from '../support/world.ts';

const DAY = 86_400_000;

/** What the core of the protocol has, and nothing else. */
const CORE_MESSAGES = ['task_accepted', 'task_rejected', 'event', 'task_completed', 'task_failed'];
const CORE_EVENTS = [
  'session_created',
  'state_changed',
  'progress',
  'intermediate_result',
  'log',
  'warning',
  'error',
  'checkpoint_created',
  'session_closed',
];

const EVERYTHING: Extensions = Object.fromEntries(
  ['replay/1', 'status/1', 'stream/1', 'approval/1', 'cure/1', 'pause/1', 'acme.org/colour/1'].map((name) => [
    name,
    {},
  ]),
);

const SKILLED: Capability = {
  ...TASK,
  input_schema: { type: 'object', properties: { temperature: { type: 'number', maximum: 100 } } },
  extensions: ['pause/1', 'resume/1', 'acme.org/colour/1'],
  safety: { risk_ceiling: 'R3', requires_human_approval: true, involves_physical_resources: true },
};

const OPTIONS: CapabilityOptions = {
  envelope: { parameters: { pressure: { max: 2, hard_limit: true }, speed: { max: 5, hard_limit: false } } },
  risk: {
    baseline: 'R1',
    rules: [
      {
        when: { required: ['inputs'], properties: { inputs: { required: ['careful'] } } },
        level: 'R3',
        because: 'It asks for care',
      },
      {
        when: { properties: { inputs: { properties: { speed: { minimum: 100 } }, required: ['speed'] } } },
        level: 'R5',
        because: 'It is too fast',
        cure: [{ op: 'replace', path: '/inputs/speed', value: 1 }],
      },
    ],
  },
};

const doing: Executor = async (task, run) => {
  const { what } = task.inputs;
  if (run.resumedFrom !== undefined) return { outputs: {} };
  if (what === 'talk') {
    await run.progress({ stage: 'talking', percent: 1, message: 'a' });
    await run.log({ level: 'info', message: 'b' });
    await run.warning({ code: 'c', message: 'c' });
    await run.error({ code: 'd', message: 'd', recoverable: true });
    await run.intermediateResult({ result_type: 'e', data: [1], is_partial: true });
  }
  if (what === 'pause') {
    await run.pause();
    await run.resume();
  }
  if (what === 'checkpoint' || what === 'restart') await run.checkpoint({}, { description: 'half' });
  if (what === 'exceed') await run.guard.act('move', { speed: 6 });
  if (what === 'violate') await run.guard.act('press', { pressure: 3 });
  if (what === 'fail') throw new Error('Too hot');
  if (what === 'wait' || what === 'restart') return untilStopped(task, run);
  return { outputs: { done: true } };
};

/** One caller, one callee, and what that caller asks for. */
interface Scene {
  readonly world: World;
  readonly clock: ManualClock;
  readonly extensions: Extensions | undefined;
  callee: Callee;
}

async function until(world: World, isIt: (message: Heard) => boolean): Promise<Heard> {
  for (;;) {
    const message = await world.next();
    if (isIt(message)) return message;
  }
}

/** The answer to a submit. */
function answer(world: World, messageId: string): Promise<Heard> {
  return until(world, ({ payload }) => 'in_reply_to' in payload && payload.in_reply_to === messageId);
}

function closing(world: World, sessionId: string | null): Promise<Heard> {
  return until(
    world,
    ({ session_id, type, payload }) =>
      session_id === sessionId && type === 'event' && payload.event_type === 'session_closed',
  );
}

function submit({ world, extensions }: Scene, payload: Partial<TaskSubmitPayload>): Promise<string> {
  return world.submit({ ...payload, ...(extensions && { extensions }) });
}

async function accepted(scene: Scene, inputs: object): Promise<string> {
  const heard = await answer(scene.world, await submit(scene, { inputs: { ...inputs } }));
  expect(heard.type).toBe('task_accepted');
  return String(heard.session_id);
}

/** Everything the callee was told before has had its effect: it takes one command at a time. */
async function settled({ world }: Scene): Promise<void> {
  await answer(world, await world.submit({ capability: 'test.echo' }));
}

async function nag({ world }: Scene, sessionId: string): Promise<void> {
  await askPause(world, sessionId, { mode: 'immediate' });
  await askResume(world, sessionId);
  await askPause(world, sessionId);
  await askResume(world, sessionId);
  await askReplay(world, sessionId, [1, 99]);
  await askStatus(world, sessionId);
}

/** A task that waits for a human. */
async function pending(scene: Scene): Promise<{ messageId: string; sessionId: string }> {
  const messageId = await submit(scene, { inputs: { careful: true } });
  await settled(scene);
  const [approval] = await scene.callee.approvals.list();
  const sessionId = approval?.sessionId ?? 'none waits';
  await nag(scene, sessionId);
  await settled(scene);
  return { messageId, sessionId };
}

/** Task that goes through without a word from the test. */
function plain(inputs: object): (scene: Scene) => Promise<void> {
  return async (scene) => void (await closing(scene.world, await accepted(scene, inputs)));
}

function refused(payload: Partial<TaskSubmitPayload>, reason: string): (scene: Scene) => Promise<void> {
  return async (scene) => {
    const heard = await answer(scene.world, await submit(scene, payload));
    expect(heard).toMatchObject({ type: 'task_rejected', payload: { reason_code: reason } });
  };
}

const approver = 'Ada';

const FLOWS: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  completes: plain({}),
  'says all it can': plain({ what: 'talk' }),
  'pauses itself': plain({ what: 'pause' }),
  'stores a checkpoint': plain({ what: 'checkpoint' }),
  'goes beyond a soft limit': plain({ what: 'exceed' }),
  'breaks a hard limit': plain({ what: 'violate' }),
  fails: plain({ what: 'fail' }),
  'describes the callee': async (scene) => {
    const heard = await answer(scene.world, await submit(scene, { capability: 'hcp.describe' }));
    await closing(scene.world, heard.session_id);
  },
  'is rejected, with a cure at hand for its inputs': refused({ inputs: { temperature: 200 } }, 'invalid_input'),
  'is rejected, with a cure at hand for its risk': refused({ inputs: { speed: 200 } }, 'risk_too_high'),
  'is rejected for its version': refused({ capability_version: '9.x' }, 'capability_version_unsupported'),
  'takes too long': async (scene) => {
    const sessionId = await accepted(scene, { what: 'wait' });
    scene.clock.advance(DAY / 2);
    await closing(scene.world, sessionId);
  },
  'is nagged and aborted': async (scene) => {
    const sessionId = await accepted(scene, { what: 'wait' });
    await nag(scene, sessionId);
    await scene.world.abort(sessionId);
    await closing(scene.world, sessionId);
    await nag(scene, sessionId);
    await settled(scene);
  },
  'is approved': async (scene) => {
    const { messageId, sessionId } = await pending(scene);
    await scene.callee.approvals.approve(sessionId, { approver });
    expect((await answer(scene.world, messageId)).type).toBe('task_accepted');
    await closing(scene.world, sessionId);
  },
  'is denied': async (scene) => {
    const { messageId, sessionId } = await pending(scene);
    await scene.callee.approvals.deny(sessionId, { approver });
    expect((await answer(scene.world, messageId)).type).toBe('task_rejected');
  },
  'finds nobody to approve it': async (scene) => {
    const { messageId } = await pending(scene);
    scene.clock.advance(2 * DAY);
    expect((await answer(scene.world, messageId)).type).toBe('task_rejected');
  },
  'survives a restart': async (scene) => {
    const sessionId = await accepted(scene, { what: 'restart' });
    await until(scene.world, ({ payload }) => 'event_type' in payload && payload.event_type === 'checkpoint_created');
    await scene.callee.close();
    scene.callee = await serve(scene.world, scene.clock);
    await closing(scene.world, sessionId);
  },
};

async function serve(world: World, clock: ManualClock): Promise<Callee> {
  const policy = acceptKnownCallers({ [world.callerId]: { riskLimit: 'R3' } });
  const callee = await world.callee({ policy, clock, prefetch: 1 });
  await callee.capability(SKILLED, doing, OPTIONS).start();
  return callee;
}

/** Runs every flow there is, in any order, and answers all that its caller got. */
async function receivedBy(stack: Stack, extensions: Extensions | undefined): Promise<readonly Delivery[]> {
  const random = seededRandom('HCP_SEED');
  await using world = await World.create(stack);
  const clock = new ManualClock();
  const scene: Scene = { world, clock, extensions, callee: await serve(world, clock) };
  const flows = Object.entries(FLOWS)
    .map((flow) => ({ flow, place: random() }))
    .toSorted((a, b) => a.place - b.place);
  for (const { flow } of flows) {
    const [what, run] = flow;
    try {
      await run(scene);
    } catch (error) {
      throw new Error(`A task that ${what} went wrong (seed ${random.seed})`, { cause: error });
    }
  }
  await settled(scene);
  return world.received;
}

/** What a peer that knows the core alone would not understand in a message. */
function strangeness({ body, properties }: Delivery): unknown {
  const { type, session_id, payload } = JSON.parse(Buffer.from(body).toString());
  if (properties.type !== type || !CORE_MESSAGES.includes(type)) return type;
  if (type === 'event' && !CORE_EVENTS.includes(payload.event_type)) return payload.event_type;
  if ('extensions' in payload) return { type, ...payload.extensions };
  if (type === 'task_rejected' && session_id !== null) return 'a rejection of a session';
  return undefined;
}

describeOnStacks('a caller that asks for no extension', (stack) => {
  verifies(['P9', 'HCP-006'], 'gets nothing of any, whatever becomes of its tasks', async () => {
    const received = await receivedBy(stack(), undefined);
    expect(received.map(strangeness).filter((strange) => strange !== undefined)).toEqual([]);
    expect(received.length).toBeGreaterThan(3 * Object.keys(FLOWS).length);
  });

  verifies('P9', 'is the only one: who asks for all of them gets something of each in the same flows', async () => {
    const strange = JSON.stringify((await receivedBy(stack(), EVERYTHING)).map(strangeness));
    for (const sign of [
      '"x-approval-pending"',
      '"x-status"',
      '"x-replay-unavailable"',
      '"a rejection of a session"',
      '{"type":"task_rejected","cure/1":{"patch":[{"op":"replace","path":"/inputs/temperature"',
      '{"type":"task_rejected","cure/1":{"patch":[{"op":"replace","path":"/inputs/speed"',
      '{"type":"task_completed","stream/1"',
      '{"type":"task_failed","stream/1"',
    ]) {
      expect(strange).toContain(sign);
    }
    for (const name of ['pause/1', 'acme.org/colour/1']) expect(strange).toContain(name);
  });
});
