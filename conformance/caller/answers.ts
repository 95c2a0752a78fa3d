import { randomUUID } from 'node:crypto';
import { IN_REPLY_TO_HEADER } from '../../shared/messages/message.ts';
import { expectSame, expectThat } from '../wire/expect.ts';
import { family } from './family.ts';
import { PlayedSession } from './played-session.ts';
import { onlyOutcome } from './submitting.ts';

/** How a caller finds the submit an answer is for. */
export const answers = family('answers', [
  [
    'reverse-order',
    ['HCP-204', 'V-11'],
    'matches two answers that come in reverse order',
    async (bench) => {
      bench.start({ submits: 2 });
      const submits = [await bench.command('task_submit'), await bench.command('task_submit')];
      for (const submit of submits.reverse()) await (await (await bench.accept(submit)).begin()).sees(1, 2);
    },
  ],
  [
    'accepted-twice',
    ['HCP-220', 'V-121'],
    'ignores the same acceptance when it comes again',
    async (bench) => {
      bench.start();
      const { message } = await bench.command('task_submit');
      const session = bench.stranger();
      const accepted = bench.callee.compose('task_accepted', session.sessionId, acceptance(message.message_id));
      await bench.callee.send(accepted);
      await session.begin();
      await bench.callee.send(accepted);
      await session.report(3);
      await session.sees(1, 2, 3);
      expectThat(bench.callee.heard.length === 1, 'It sent a command because of it');
    },
  ],
  [
    'second-session',
    ['HCP-205', 'V-122'],
    'keeps the first session of a submit and aborts a second one',
    async (bench) => {
      bench.start();
      const submit = await bench.command('task_submit');
      const first = await bench.accept(submit);
      const second = await bench.accept(submit);
      const abort = await bench.command('abort');
      expectThat(abort.message.session_id === second.sessionId, 'It aborted the wrong session');
      await first.begin();
      await first.sees(1, 2);
    },
  ],
  [
    'rejected',
    ['HCP-228', 'V-03'],
    'tells a rejection with its code',
    async (bench) => {
      bench.start();
      const { message } = await bench.command('task_submit');
      await bench.callee.reject(message.message_id, 'risk_too_high');
      const { outcome, code } = await onlyOutcome(bench);
      expectSame([outcome, code], ['rejected', 'risk_too_high'], 'What it told');
    },
  ],
  [
    'rejected-with-session',
    ['V-132'],
    'takes a rejection that carries a session id like any other',
    async (bench) => {
      bench.start();
      const { message } = await bench.command('task_submit');
      await bench.callee.reject(message.message_id, 'forbidden', randomUUID());
      const { outcome } = await onlyOutcome(bench);
      expectThat(outcome === 'rejected', `It told ${outcome}`);
    },
  ],
  [
    'unknown-code',
    ['V-133'],
    'tells a rejection by a code it does not know',
    async (bench) => {
      bench.start();
      const { message } = await bench.command('task_submit');
      await bench.callee.reject(message.message_id, 'quota');
      const { outcome, code } = await onlyOutcome(bench);
      expectSame([outcome, code], ['rejected', 'quota'], 'What it told');
    },
  ],
  [
    'one-rejected',
    ['HCP-204', 'V-11'],
    'tells which of two tasks was rejected, and follows the other',
    async (bench) => {
      bench.start({ submits: 2 });
      const [first, second] = [await bench.command('task_submit'), await bench.command('task_submit')];
      await bench.callee.reject(second.message.message_id, 'forbidden');
      const session = await (await bench.accept(first)).begin();
      await session.finish(3);
      await session.sees(1, 2, 3, 4);
      await session.ends('completed');
      const told = () => bench.report.lines.filter(({ outcome }) => outcome === 'rejected');
      await bench.until(
        () => 'the rejection',
        () => told()[0],
      );
      expectThat(told().length === 1, `It told ${told().length} rejections`);
    },
  ],
  [
    'no-reference',
    ['HCP-204', 'V-134'],
    'matches an answer that names no submit when one is open',
    async (bench) => {
      bench.start();
      await bench.command('task_submit');
      const session = bench.stranger();
      await bench.callee.accept(session.sessionId, undefined);
      await session.begin();
      await session.sees(1, 2);
    },
  ],
  [
    'no-guess',
    ['HCP-204', 'V-134'],
    'does not guess which of two open submits an answer is for',
    async (bench) => {
      bench.start({ submits: 2 });
      const submits = [await bench.command('task_submit'), await bench.command('task_submit')];
      const stranger = bench.stranger();
      await bench.callee.accept(stranger.sessionId, undefined);
      await stranger.begin();
      for (const submit of submits) await (await (await bench.accept(submit)).begin()).sees(1, 2);
      expectThat(stranger.handled.length === 0, 'It followed the session of an answer that could be for either');
    },
  ],
  [
    'header',
    ['HCP-204'],
    'matches answers by their header alone',
    async (bench) => {
      bench.start({ submits: 2 });
      const submits = [await bench.command('task_submit'), await bench.command('task_submit')];
      for (const { message } of submits.reverse()) {
        const session = new PlayedSession(bench, randomUUID());
        const headers = { [IN_REPLY_TO_HEADER]: message.message_id };
        await bench.callee.accept(session.sessionId, undefined, {}, { properties: { headers } });
        await session.begin();
        await session.sees(1, 2);
      }
    },
  ],
  [
    'unknown-fields',
    ['HCP-006'],
    'ignores fields it does not know, of a newer minor version',
    async (bench) => {
      bench.start();
      const { message } = await bench.command('task_submit');
      const session = bench.stranger();
      const envelope = { hcp_version: '1.7', x_new: { a: 1 } };
      await bench.callee.accept(session.sessionId, message.message_id, { x_more: [1] }, { envelope });
      await session.begin();
      await session.event(3, 'progress', { stage: 'new', message: 'x', x_field: true }, { envelope });
      await session.sees(1, 2, 3);
    },
  ],
]);

function acceptance(inReplyTo: unknown): Record<string, unknown> {
  return { session_token: 'conformance', risk_level: 'R1', in_reply_to: inReplyTo };
}
