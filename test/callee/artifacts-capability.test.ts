import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseBaseUrl } from '../../callee/artifacts/base-url.ts';
import { artifactUri, createArtifactHandler, describeFile } from '../../callee/artifacts/index.ts';
import { acceptKnownCallers, type Executor, TaskFailure } from '../../callee/index.ts';
import type { Artifact } from '../../schemas/types.ts';
import { createKeyRing } from '../../session/keys/key-ring.ts';
import { generateKey } from '../../session/keys/ring-key.ts';
import { logRow, readTail, tailAfter, takeoverEntry } from '../../session/log.ts';
import { ManualClock } from '../../testing/manual-clock.ts';
import { disposableFolder } from '../shared/store/support/disposable-folder.ts';
import { untilStopped } from '../support/executors.ts';
import { mistake } from '../support/mistakes.ts';
import { SecondCaller } from '../support/second-caller.ts';
import { describeOnStacks } from '../support/stacks.ts';
import { verifies } from '../support/verifies.ts';
import { type Heard, tell, World } from '../support/world.ts';

const keys = await createKeyRing([await generateKey()]);
const CHECKSUM = `sha256:${'0'.repeat(64)}`;

/** The entry of `curve.csv` in the result of a session. */
function curve(world: World, sessionId: string, more: Partial<Artifact> = {}): Artifact {
  return { name: 'Curve', type: 'text/csv', uri: artifactUri(world.calleeId, sessionId, 'curve.csv'), ...more };
}

/** A callee that does what `executor` says, and `hcp.artifact`. */
async function serve(
  world: World,
  executor: Executor,
  { callers = [world.callerId], baseUrl = 'https://lab.example/files/' } = {},
) {
  const clock = new ManualClock();
  const policy = acceptKnownCallers(callers);
  await world.serve(executor, { policy, keys, clock, artifacts: { baseUrl, urlLifetime: 'PT1M' } });
  return clock;
}

/** Runs a task to its end and answers its session. */
async function run(world: World, payload = {}): Promise<string> {
  await world.submit(payload);
  const { sessionId } = await world.started();
  await world.hearOut();
  return sessionId;
}

/** Asks for a URI and answers the result. */
async function retrieve(world: World, uri: unknown): Promise<Heard> {
  await world.submit({ capability: 'hcp.artifact', inputs: { uri } });
  await world.started();
  const result = await world.next();
  await world.hearOut();
  return result;
}

async function outputsOf(world: World, uri: string): Promise<Record<string, unknown>> {
  const result = await retrieve(world, uri);
  if (result.type !== 'task_completed') throw new Error(`Heard ${tell(result)}`);
  return result.payload.outputs;
}

const REFUSAL = {
  error_code: 'input_error',
  error_message: 'No artifact of your sessions has this URI',
  error_details: {},
};

/** Everything a refusal says; what differs between two of them tells the caller something. */
function wordsOf(result: Heard): object {
  if (result.type !== 'task_failed') throw new Error(`Expected a refusal, heard ${tell(result)}`);
  const { execution_summary: _, ...words } = result.payload;
  return words;
}

/** A web server for one file, on this machine. */
async function serveFile(calleeId: string, path: string): Promise<{ baseUrl: string } & Disposable> {
  const server = createServer(
    createArtifactHandler({ calleeId, keys, locate: async () => path, clock: new ManualClock() }),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    baseUrl: `http://127.0.0.1:${port}/files`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describeOnStacks('hcp.artifact', (stack) => {
  verifies('artifact/1', 'what a task describes is what its caller downloads', async () => {
    using folder = disposableFolder();
    const path = join(folder.path, 'curve.csv');
    writeFileSync(path, randomBytes(300_000));
    await using world = await World.create(stack());
    const { calleeId } = world;
    using server = await serveFile(calleeId, path);
    const measure: Executor = async (_, { sessionId }) => {
      const artifact = await describeFile({ path, name: 'curve.csv', type: 'text/csv', calleeId, sessionId });
      return { outputs: {}, artifacts: [artifact] };
    };
    await serve(world, measure, { baseUrl: server.baseUrl });
    const sessionId = await run(world);
    const { url, checksum, size_bytes } = await outputsOf(world, artifactUri(calleeId, sessionId, 'curve.csv'));
    const response = await fetch(String(url));
    const content = Buffer.from(await response.arrayBuffer());
    expect([response.status, content.length]).toEqual([200, size_bytes]);
    expect(`sha256:${createHash('sha256').update(content).digest('hex')}`).toBe(checksum);
    expect(response.headers.get('content-type')).toBe('text/csv');
  });

  verifies('artifact/1', 'the caller of a session gets a signed URL for an artifact of its result', async () => {
    await using world = await World.create(stack());
    const clock = await serve(world, async (_, { sessionId }) => ({
      outputs: {},
      artifacts: [
        { name: 'Other', type: 'text/plain', uri: artifactUri(world.calleeId, sessionId, 'other.txt') },
        curve(world, sessionId, { size_bytes: 5, checksum: CHECKSUM }),
      ],
    }));
    const sessionId = await run(world);
    const { uri } = curve(world, sessionId);
    const outputs = await outputsOf(world, uri);
    expect(outputs).toEqual({
      url: expect.stringMatching(/^https:\/\/lab\.example\/files\/[\w-]+\.[\w-]+\.[\w-]+$/),
      expires_at: '2025-01-15T08:31:00.000Z',
      size_bytes: 5,
      checksum: CHECKSUM,
    });
    const token = String(outputs.url).split('/').at(-1) ?? '';
    const now = clock.now() / 1000;
    expect(await keys.verify(token, 'hcp-artifact+jwt')).toEqual({
      ...{ iss: world.calleeId, sub: world.callerId, uri, iat: now, exp: now + 60 },
      ...{ type: 'text/csv', size_bytes: 5, checksum: CHECKSUM },
    });
  });

  verifies('artifact/1', 'what a failed session left can be fetched too; nothing is made up', async () => {
    await using world = await World.create(stack());
    await serve(world, async (_, { sessionId }) => {
      throw new TaskFailure('execution_error', 'Too hot', { artifacts: [curve(world, sessionId)] });
    });
    const sessionId = await run(world);
    const outputs = await outputsOf(world, curve(world, sessionId).uri);
    expect(Object.keys(outputs).sort()).toEqual(['expires_at', 'url']);
  });

  verifies('artifact/1', 'the same address in another spelling is the same artifact', async () => {
    await using world = await World.create(stack());
    await serve(world, async (_, { sessionId }) => ({ outputs: {}, artifacts: [curve(world, sessionId)] }));
    const sessionId = await run(world);
    const spelling = `hcp://${world.calleeId}/${sessionId.toUpperCase()}/%63urve%2Ecsv`;
    const { url } = await outputsOf(world, spelling);
    const claims = await keys.verify(String(url).split('/').at(-1) ?? '', 'hcp-artifact+jwt');
    expect(claims.uri).toBe(curve(world, sessionId).uri);
  });

  verifies('artifact/1', 'the result is found however long the session was and whatever came after it', async () => {
    await using world = await World.create(stack());
    await serve(world, async (_, { sessionId, progress }) => {
      for (let i = 0; i < 40; i++) await progress({ stage: 'measuring', message: `Sample ${i}` });
      return { outputs: {}, artifacts: [curve(world, sessionId)] };
    });
    const sessionId = await run(world);
    let tail = await readTail(world.store, sessionId);
    for (let i = 0; i < 40; i++) {
      const entry = takeoverEntry(sessionId, tail, 0);
      await world.store.append('log', [logRow(entry)]);
      tail = tailAfter(tail, entry);
    }
    expect(await outputsOf(world, curve(world, sessionId).uri)).toHaveProperty('url');
  });

  verifies(
    'artifact/1',
    'what is unknown, of another caller or not in the result is refused in the same words',
    async () => {
      await using world = await World.create(stack());
      const beta = new SecondCaller(world);
      await beta.listen();
      const callers = [world.callerId, beta.callerId];
      const byTask: Executor = async (task, run) => {
        if (task.inputs.wait) return untilStopped(task, run);
        const foreign = {
          name: 'Foreign',
          type: 'text/csv',
          uri: artifactUri('elsewhere', run.sessionId, 'foreign.csv'),
        };
        const others = [foreign, { ...foreign, uri: 'https://files.example/x' }, { ...foreign, uri: 'hcp://../..' }];
        return { outputs: {}, artifacts: task.inputs.none ? [] : [curve(world, run.sessionId), ...others] };
      };
      await serve(world, byTask, { callers });
      const own = await run(world);
      const without = await run(world, { inputs: { none: true } });
      await beta.submit();
      const [accepted] = await beta.hear(6);
      const foreign = String(accepted?.session_id);
      await beta.submit({ inputs: { wait: true } });
      const unfinished = String((await beta.hear(3))[0]?.session_id);
      const refused: readonly [what: string, uri: string][] = [
        ['an unknown session', artifactUri(world.calleeId, randomUUID(), 'curve.csv')],
        ['a session of another caller', curve(world, foreign).uri],
        ['a session of another caller that still runs', curve(world, unfinished).uri],
        ['a name that is not in the result', artifactUri(world.calleeId, own, 'curve.csv.bak')],
        ['a name in other letters', artifactUri(world.calleeId, own, 'Curve.csv')],
        ['a result without artifacts', curve(world, without).uri],
        ['an artifact of another callee', artifactUri('elsewhere', own, 'foreign.csv')],
        ['a foreign artifact under our name', artifactUri(world.calleeId, own, 'foreign.csv')],
        ['our artifact under the name of another callee', artifactUri('elsewhere', own, 'curve.csv')],
        ['an address of the vendor', 'https://files.example/x'],
        ['a way out', `hcp://${world.calleeId}/${own}/..%2F..%2Fetc%2Fpasswd`],
        ['nonsense', ''],
      ];
      for (const [what, uri] of refused) expect([what, wordsOf(await retrieve(world, uri))]).toEqual([what, REFUSAL]);
      // And yet: the one it owns it gets.
      expect(await outputsOf(world, curve(world, own).uri)).toHaveProperty('url');
      await world.abort(unfinished, {}, beta.callerId);
      expect((await beta.hear(3)).map(tell).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
    },
  );

  verifies('artifact/1', 'a session that has not ended has no artifacts, not even for its caller', async () => {
    await using world = await World.create(stack());
    await serve(world, untilStopped);
    await world.submit();
    const { sessionId } = await world.started();
    expect(wordsOf(await retrieve(world, curve(world, sessionId).uri))).toEqual(REFUSAL);
    await world.abort(sessionId);
    expect((await world.hearOut()).at(-1)).toBe('E5 closed ABORTED cleanup_complete');
    expect(wordsOf(await retrieve(world, curve(world, sessionId).uri))).toEqual(REFUSAL);
  });

  verifies('artifact/1', 'a session of another callee in the same store is not ours to tell of', async () => {
    await using world = await World.create(stack());
    const theirs = (sessionId: string) => artifactUri('elsewhere', sessionId, 'curve.csv');
    await serve(world, async (_, { sessionId }) => ({
      outputs: {},
      artifacts: [curve(world, sessionId), curve(world, sessionId, { uri: theirs(sessionId) })],
    }));
    const sessionId = await run(world);
    await world.store.commit([{ patch: 'sessions', key: [sessionId], set: { callee_id: 'elsewhere' } }]);
    for (const uri of [curve(world, sessionId).uri, theirs(sessionId)]) {
      expect(wordsOf(await retrieve(world, uri))).toEqual(REFUSAL);
    }
  });

  verifies('artifact/1', 'inputs without a URI do not pass the gate', async () => {
    await using world = await World.create(stack());
    await serve(world, async () => ({ outputs: {} }));
    for (const inputs of [{}, { uri: 7 }, { uri: null }]) {
      await world.submit({ capability: 'hcp.artifact', inputs });
      expect(tell(await world.next())).toBe('task_rejected invalid_input');
    }
  });
});

describe('the base of the URLs', () => {
  it('is https, or on this machine', () => {
    for (const [url, base] of [
      ['https://lab.example', 'https://lab.example'],
      ['https://lab.example/files//', 'https://lab.example/files'],
      ['http://127.0.0.1:8080/files', 'http://127.0.0.1:8080/files'],
      ['http://[::1]/', 'http://[::1]'],
      ['http://localhost', 'http://localhost'],
    ]) {
      expect(parseBaseUrl(url, 'baseUrl')).toBe(base);
    }
    for (const url of [
      'http://lab.example',
      'http://127.example',
      'ftp://lab.example',
      'lab.example',
      '',
      'https://',
      undefined,
      7,
    ]) {
      const told = mistake(() => parseBaseUrl(url, 'baseUrl'));
      expect(told).toBe('baseUrl must be an https:// URL; http:// works on loopback alone');
    }
  });

  it('is a plain one', () => {
    for (const url of ['https://a.example?x', 'https://a.example/#x', 'https://me:secret@a.example']) {
      const told = mistake(() => parseBaseUrl(url, 'baseUrl'));
      expect(told).toBe('baseUrl must have no query, no fragment and no credentials');
    }
  });
});
