import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expectSame, expectThat } from '../../wire/expect.ts';
import { at, type Heard, isEvent } from '../../wire/heard.ts';
import { bytes } from '../../wire/raw.ts';
import { expectLawful } from '../../wire/stream.ts';
import type { CalleeBench } from '../bench.ts';
import { calleeFamily } from '../family.ts';
import { COMPLETE, fail, HANG, PAUSE, progress, type Script } from '../script.ts';
import type { Session } from '../session.ts';

const check = calleeFamily('abort');

async function running(bench: CalleeBench, script: Script = [HANG]): Promise<Session> {
  const session = await bench.start(script);
  await session.state('RUNNING');
  return session;
}

/** The session was not stopped by what was sent: it can still be, by the real thing. */
async function expectUnmoved(bench: CalleeBench, session: Session): Promise<void> {
  await bench.quiet();
  await session.abort();
  await session.hearOut();
  expectSame(final(session), 'ABORTED', 'final_state');
  expectLawful(session.heard);
}

function final({ heard }: Session): unknown {
  return at(heard.at(-1) as Heard, '/payload/data/final_state'); // it was heard out
}

/** Aborting a session that has ended changes nothing. */
function ignoredAfter(name: string, what: string, script: Script, abortFirst = false) {
  return check(name, ['V-73', 'HCP-124'], `Aborting a session that ${what} says nothing`, async (bench) => {
    const session = await running(bench, script);
    if (abortFirst) await session.abort();
    await session.hearOut();
    await session.abort();
    await bench.quiet();
  });
}

export const abortChecks = [
  check('running', ['V-71', 'HCP-122'], 'A running task is stopped at once', async (bench) => {
    const session = await running(bench);
    await session.abort();
    const aborting = await session.next();
    expectSame(at(aborting, '/payload/data/to_state'), 'ABORTING', 'The next state');
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
  }),
  check('sleeping', ['V-71', 'HCP-122'], 'A task in the middle of a long step is stopped', async (bench) => {
    const session = await running(bench, [{ sleep_ms: 600_000 }]);
    await session.abort();
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
  }),
  check('paused', ['V-71', 'HCP-122'], 'A paused task is stopped', async (bench) => {
    const session = await bench.start([PAUSE, HANG]);
    await session.state('PAUSED');
    await session.abort();
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
  }),
  check('no-result', ['V-06', 'V-15'], 'An aborted task has no result', async (bench) => {
    const session = await running(bench, [progress(), HANG]);
    await session.abort();
    await session.hearOut();
    await bench.quiet();
    const results = bench.arrived.filter(({ type, sessionId }) => sessionId === session.id && /^task_[cf]/.test(type));
    expectSame(results.length, 0, 'The number of results');
  }),
  check('first-of-all', ['HCP-124'], 'A task aborted right behind its acceptance is aborted', async (bench) => {
    const session = await bench.start([HANG]);
    await session.abort();
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
    expectLawful(session.heard);
  }),
  check('again', ['V-72', 'HCP-124'], 'A second abort during the cleanup says nothing', async (bench) => {
    const session = await running(bench, [{ cleanup_ms: 300 }, progress(), HANG]);
    await session.event('progress');
    await session.abort();
    await session.state('ABORTING');
    await session.abort();
    await session.hearOut();
    const aborting = session.heard.filter((heard) => at(heard, '/payload/data/to_state') === 'ABORTING');
    expectSame(aborting.length, 1, 'The number of →ABORTING');
    await bench.quiet();
  }),
  check('many', ['V-72', 'HCP-124'], 'Ten aborts at once abort once', async (bench) => {
    const session = await running(bench);
    await Promise.all(Array.from({ length: 10 }, () => session.abort()));
    await session.hearOut();
    expectLawful(session.heard);
    await bench.quiet();
  }),
  check('same-again', ['V-72', 'HCP-124'], 'The same abort delivered twice aborts once', async (bench) => {
    const session = await running(bench);
    const envelope = { message_id: randomUUID() };
    for (let i = 0; i < 2; i++) await bench.abort(session.id, { session_token: session.token }, { envelope });
    await session.hearOut();
    await bench.quiet();
  }),
  ignoredAfter('completed', 'is completed', [COMPLETE]),
  ignoredAfter('failed', 'has failed', [fail()]),
  ignoredAfter('aborted', 'was aborted', [HANG], true),
  check('unknown', ['V-74', 'HCP-124'], 'Aborting a session nobody knows says nothing', async (bench) => {
    await bench.abort(randomUUID(), { session_token: 'x' });
    await bench.quiet();
  }),
  check('null', ['V-75'], 'Aborting no session says nothing', async (bench) => {
    const session = await running(bench);
    await bench.abort(null, { session_token: session.token });
    await expectUnmoved(bench, session);
  }),
  check('wrong-token', ['V-76'], 'An abort with a wrong token is ignored', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id, { session_token: 'wrong' });
    await expectUnmoved(bench, session);
  }),
  check('other-token', ['V-76'], 'An abort with the token of another session is ignored', async (bench) => {
    const [session, other] = [await running(bench), await running(bench)];
    await bench.abort(session.id, { session_token: other.token });
    await expectUnmoved(bench, session);
  }),
  check('empty-token', ['V-76'], 'An abort with an empty token is ignored', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id, { session_token: '' });
    await expectUnmoved(bench, session);
  }),
  check('token-number', ['HCP-005'], 'An abort whose token is a number is ignored', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id, { session_token: 7 });
    await expectUnmoved(bench, session);
  }),
  check('no-token', ['V-78'], 'An abort without a token aborts or is ignored, as the callee rules', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id);
    await bench.stillServes();
    await delay(bench.quietMs);
    await session.abort();
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
    expectLawful(session.heard);
  }),
  check('other-caller', ['V-79'], 'An abort that says it comes from another caller is ignored', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id, {}, { properties: { appId: 'somebody-else' } });
    await expectUnmoved(bench, session);
  }),
  check('other-bench', ['V-79'], 'Another caller cannot abort, not even by the session id', async (bench) => {
    const session = await running(bench);
    await (await bench.another()).abort(session.id);
    await expectUnmoved(bench, session);
  }),
  check('no-app-id', ['HCP-122'], 'An abort without app_id, but with the token, aborts', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id, { session_token: session.token }, { properties: { appId: undefined } });
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
  }),
  check('reason', ['HCP-006'], 'An abort may give a reason and carry unknown fields', async (bench) => {
    const session = await running(bench);
    await session.abort({ reason: 'Enough', mood: 'bad' });
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
  }),
  check('upper-case', ['D-31'], 'A session id in capital letters is the same session', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id.toUpperCase(), { session_token: session.token });
    await session.hearOut();
    expectSame(final(session), 'ABORTED', 'final_state');
  }),
  check('version-2', ['V-38'], 'An abort of version 2.0 is ignored', async (bench) => {
    const session = await running(bench);
    await bench.abort(session.id, { session_token: session.token }, { envelope: { hcp_version: '2.0' } });
    await expectUnmoved(bench, session);
  }),
  check('spoilt', ['V-30'], 'An abort that cannot be read is ignored', async (bench) => {
    const session = await running(bench);
    const properties = { type: 'abort', correlationId: session.id, appId: bench.callerId };
    await bench.send({ body: bytes('{"type":"abort"'), properties });
    await expectUnmoved(bench, session);
  }),
  check(
    'behind-submits',
    ['V-80', 'HCP-125'],
    'An abort behind twenty submits does not wait for their tasks',
    async (bench) => {
      const session = await running(bench);
      const submissions = await Promise.all(Array.from({ length: 20 }, () => bench.submit([{ sleep_ms: 600_000 }])));
      const sentAt = performance.now();
      await session.abort();
      await session.hearOut();
      const tookMs = performance.now() - sentAt;
      expectThat(tookMs < bench.waitMs, `It took ${Math.round(tookMs)} ms`);
      for (const submission of submissions) await bench.accepted(submission);
    },
  ),
  check('only-one', ['HCP-124'], 'Aborting one session leaves the others alone', async (bench) => {
    const [session, other] = [await running(bench), await running(bench)];
    await session.abort();
    await session.hearOut();
    const stopped = bench.arrived.some((heard) => heard.sessionId === other.id && isEvent(heard, 'session_closed'));
    expectThat(!stopped, 'Another session was closed as well');
    await expectUnmoved(bench, other);
  }),
];
