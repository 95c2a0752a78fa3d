import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  type ArtifactOptions,
  artifactUri,
  createArtifactHandler,
  createCallee,
  describeFile,
  openStoredKeyRing,
} from '../../callee/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { hcpTables } from '../../shared/store/tables.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { mistake, untouchable } from '../support/mistakes.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { tell, World } from '../support/world.ts';

const nothing = async () => ({ outputs: {} });
const artifacts: ArtifactOptions = { baseUrl: 'https://lab.example/files' };

/** What is offered with a task. */
async function offered(world: World): Promise<unknown> {
  await world.submit({ extensions: { 'artifact/1': {} } });
  const accepted = await world.next();
  if (accepted.type !== 'task_accepted') throw new Error(`Heard ${tell(accepted)}`);
  await world.hearOut();
  return accepted.payload.extensions;
}

describeOnStacks('artifacts of a callee', (stack) => {
  verifies(['artifact/1', 'P5'], 'are offered where they are served', async () => {
    await using world = await World.create(stack());
    await world.serve(nothing, { artifacts });
    expect(await offered(world)).toEqual({ 'artifact/1': {} });
    const uri = artifactUri(world.calleeId, '3fa85f64-5717-4562-b3fc-2c963f66afa6', 'curve.csv');
    await world.submit({ capability: 'hcp.artifact', inputs: { uri } });
    await world.started();
    expect(tell(await world.next())).toBe('task_failed input_error');
    await world.hearOut();
    await world.submit({ capability: 'hcp.describe' });
    const told = (await world.hear(4)).at(-1);
    expect(told).toMatchObject({ payload: { outputs: { extensions: expect.arrayContaining(['artifact/1']) } } });
    await world.hearOut();
  });

  verifies(['artifact/1', 'P5'], 'are not offered where they are not', async () => {
    await using world = await World.create(stack());
    await world.serve(nothing);
    expect(await offered(world)).toBeUndefined();
    await world.submit({ capability: 'hcp.artifact', inputs: { uri: 'hcp://x' } });
    expect(tell(await world.next())).toBe('task_rejected capability_not_found');
    await world.submit({ extensions: { 'artifact/1': { required: true } } });
    expect(tell(await world.next())).toBe('task_rejected invalid_input');
  });

  verifies('artifact/1', 'are served by whoever has the keys of the callee, by default out of its store', async () => {
    using folder = disposableFolder();
    const path = join(folder.path, 'curve.csv');
    writeFileSync(path, 'x,y\n1,2\n');
    await using world = await World.create(stack());
    const { calleeId } = world;
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo; // it listens on a port
    await world.serve(
      async (_, { sessionId }) => {
        const artifact = await describeFile({ path, name: 'curve.csv', type: 'text/csv', calleeId, sessionId });
        return { outputs: {}, artifacts: [artifact] };
      },
      { artifacts: { baseUrl: `http://127.0.0.1:${port}/`, urlLifetime: 'PT1H' } },
    );
    const keys = await openStoredKeyRing(world.store, calleeId, { clock: systemClock });
    server.on('request', createArtifactHandler({ calleeId, keys, locate: async () => path }));
    await world.submit();
    const { sessionId } = await world.started();
    await world.hearOut();
    await world.submit({ capability: 'hcp.artifact', inputs: { uri: artifactUri(calleeId, sessionId, 'curve.csv') } });
    await world.started();
    const completed = await world.next();
    if (completed.type !== 'task_completed') throw new Error(`Heard ${tell(completed)}`);
    const { url, expires_at } = completed.payload.outputs;
    const leftMs = Date.parse(String(expires_at)) - Date.parse(completed.timestamp);
    expect(leftMs).toBeGreaterThan(3_590_000);
    expect(leftMs).toBeLessThanOrEqual(3_600_000);
    expect(await (await fetch(String(url))).text()).toBe('x,y\n1,2\n');
    await world.hearOut();
    server.closeAllConnections();
    server.close();
  });
});

it('where artifacts are served is checked when the callee is made', () => {
  const transport = untouchable<never>('transport', ['consume', 'publish'], { link: 'local' });
  const store = untouchable<never>('store', ['commit', 'append'], { tables: hcpTables });
  const fault = (given: unknown) =>
    mistake(() => createCallee({ calleeId: 'lab', transport, store, artifacts: given as ArtifactOptions }));
  for (const given of [null, 'https://lab.example', 7]) {
    expect(fault(given)).toBe('artifacts must be an object with the baseUrl they are served under');
  }
  for (const baseUrl of [undefined, '', '/files', 'ftp://lab.example', 'http://lab.example', 7]) {
    expect(fault({ baseUrl })).toBe('artifacts.baseUrl must be an https:// URL; http:// works on loopback alone');
  }
  for (const end of ['?x=1', '#x']) {
    expect(fault({ baseUrl: artifacts.baseUrl + end })).toMatch(/^artifacts.baseUrl must have no query/);
  }
  for (const urlLifetime of ['5 minutes', 'PT0S', '', 'P1Y', 300]) {
    expect(fault({ ...artifacts, urlLifetime })).toMatch(/^artifacts.urlLifetime must be an ISO 8601 duration/);
  }
  expect(fault({ ...artifacts, urlLifeTime: 'PT1M' })).toMatch(/did you mean artifacts.urlLifetime/);
});
