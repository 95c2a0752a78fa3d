import { expect, it } from 'vitest';
import { acceptKnownCallers, type CallerRights, createCallee } from '../../callee/index.ts';
import type { Capability } from '../../schemas/types.ts';
import { hcpTables } from '../../shared/store/tables.ts';
import { mistake, untouchable } from '../support/mistakes.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { TASK, tell, World } from '../support/world.ts';

const OURS = ['replay/1', 'status/1', 'stream/1', 'approval/1', 'cure/1'];

const RISKY: Capability = {
  ...TASK,
  name: 'test.risky',
  version: '2.1.0',
  description: 'Needs a careful hand',
  extensions: ['pause/1', 'resume/1', 'acme.org/colour/1', 'replay/1', 'artifact/1', 'unheard/1'],
  safety: { risk_ceiling: 'R4', requires_human_approval: true, involves_physical_resources: true },
};

interface Description {
  readonly callee_id: string;
  readonly hcp_versions: string[];
  readonly extensions: string[];
  readonly capabilities: readonly Capability[];
}

/** A callee with two capabilities, one of them in two versions, for a caller with these rights. */
async function serve(world: World, rights: CallerRights = {}): Promise<void> {
  const callee = await world.callee({ policy: acceptKnownCallers({ [world.callerId]: rights }) });
  const nothing = async () => ({ outputs: {} });
  callee
    .capability(TASK, nothing)
    .capability({ ...TASK, version: '1.1.0' }, nothing)
    .capability(RISKY, nothing);
  await callee.start();
}

async function described(world: World): Promise<Description> {
  await world.submit({ capability: 'hcp.describe' });
  const accepted = await world.next();
  expect(accepted).toMatchObject({ type: 'task_accepted', payload: { risk_level: 'R1' } });
  await world.hear(2);
  const completed = await world.next();
  if (completed.type !== 'task_completed') throw new Error(`Heard ${tell(completed)}`);
  await world.hearOut();
  return completed.payload.outputs as unknown as Description; // as P4 has it
}

function names({ capabilities }: Description): string[] {
  return capabilities.map(({ name, version }) => `${name}@${version}`).toSorted();
}

describeOnStacks('hcp.describe', (stack) => {
  verifies('P4', 'tells a caller what there is, each with the extensions it can be asked for', async () => {
    await using world = await World.create(stack());
    await serve(world);
    const description = await described(world);
    expect(description).toMatchObject({ callee_id: world.calleeId, hcp_versions: ['1.0'], extensions: OURS });
    expect(names(description)).toEqual([
      'hcp.describe@1.0.0',
      'test.risky@2.1.0',
      'test.task@1.0.0',
      'test.task@1.1.0',
    ]);
    const { capabilities } = description;
    expect(capabilities.find(({ name }) => name === 'test.task')).toEqual({ ...TASK, extensions: OURS });
    // What the callee declares and does; what it only declares is no offer.
    expect(capabilities.find(({ name }) => name === 'test.risky')).toEqual({
      ...RISKY,
      extensions: [...OURS, 'pause/1', 'resume/1', 'acme.org/colour/1'],
    });
  });

  verifies('P4', 'tells what is true: each extension told of is in force when asked for', async () => {
    await using world = await World.create(stack());
    await serve(world);
    const { capabilities } = await described(world);
    const { extensions = [] } = capabilities.find(({ version }) => version === '1.1.0') ?? {};
    await world.submit({ extensions: Object.fromEntries(extensions.map((name) => [name, { required: true }])) });
    const accepted = await world.next();
    expect(accepted).toMatchObject({ type: 'task_accepted' });
    expect(Object.keys(accepted.type === 'task_accepted' ? (accepted.payload.extensions ?? {}) : {})).toEqual(
      extensions,
    );
    await world.hearOut();
  });

  verifies(['P4', 'HCP-302'], 'tells each caller only what that one may use, and strangers nothing', async () => {
    await using world = await World.create(stack());
    await serve(world, { capabilities: ['test.task'] });
    expect(names(await described(world))).toEqual(['hcp.describe@1.0.0', 'test.task@1.0.0', 'test.task@1.1.0']);
    const stranger = new SecondCaller(world);
    await stranger.listen();
    await stranger.submit({ capability: 'hcp.describe' });
    expect(tell(await stranger.next())).toBe('task_rejected unauthorized');
  });

  verifies('P4', 'is open to a caller with hardly any rights, and needs no approval', async () => {
    await using world = await World.create(stack());
    await serve(world, { capabilities: [], riskLimit: 'R1' });
    expect(names(await described(world))).toEqual(['hcp.describe@1.0.0']);
  });

  verifies('P4', 'is negotiated like everything else', async () => {
    await using world = await World.create(stack());
    await serve(world);
    await world.submit({ capability: 'hcp.describe', extensions: { 'pause/1': { required: true } } });
    expect(tell(await world.next())).toBe('task_rejected invalid_input');
    await world.submit({ capability: 'hcp.describe', capability_version: '2.x' });
    expect(tell(await world.next())).toBe('task_rejected capability_version_unsupported');
  });
});

it('a reserved name is refused at once, in whatever version', () => {
  const transport = untouchable<never>('transport', ['consume', 'publish'], { link: 'local' });
  const store = untouchable<never>('store', ['commit', 'append'], { tables: hcpTables });
  const callee = createCallee({ calleeId: 'lab', transport, store });
  for (const [name, version] of [
    ['hcp.describe', '1.0.0'],
    ['hcp.describe', '2.0.0'],
    ['hcp.artifact', '1.0.0'],
  ] as const) {
    const declare = () => callee.capability({ ...TASK, name, version }, async () => ({ outputs: {} }));
    expect(mistake(declare)).toBe(`Capability ${name} is the SDK's own`);
  }
});
