import { setTimeout as delay } from 'node:timers/promises';
import { parseMessage } from '../../shared/messages/parse.ts';
import { expectMatch, expectSame, expectThat } from '../wire/expect.ts';
import type { CallerBench } from './bench.ts';
import { family } from './family.ts';
import type { HeardCommand } from './played-callee.ts';
import type { ReportLine } from './report-file.ts';

const SHORT_MS = 400;

/** How a task leaves the caller. */
export const submitting = family('submit', [
  [
    'queue-first',
    ['HCP-201', 'HCP-003'],
    'has its event queue bound before it submits',
    async (bench) => {
      // Told as soon as the submit is there: without a queue it would be lost.
      const session = await bench.running();
      await session.sees(1, 2);
    },
  ],
  [
    'envelope',
    ['HCP-001', 'HCP-005'],
    'submits a message that its schema allows',
    async (bench) => {
      const { delivery, message } = await submitOf(bench);
      const parsed = parseMessage(delivery.body, delivery.properties);
      if (!parsed.ok) throw new Error(`The submit is not valid: ${parsed.fault.message}`);
      expectSame(message.session_id, null, 'The session_id of a submit');
      expectMatch(message.timestamp, /(Z|\+00:00)$/, 'The timestamp');
    },
  ],
  [
    'properties',
    ['HCP-002'],
    'sets the AMQP properties of a submit',
    async (bench) => {
      const { delivery, message } = await submitOf(bench);
      const { messageId, timestamp, contentType, contentEncoding, type, correlationId } = delivery.properties;
      const seconds = Math.floor(Date.parse(String(message.timestamp)) / 1000);
      expectSame(
        { messageId, timestamp, contentType, contentEncoding, type, correlationId },
        {
          ...{ messageId: message.message_id, timestamp: seconds, type: 'task_submit', correlationId: undefined },
          ...{ contentType: 'application/json', contentEncoding: 'utf-8' },
        },
        'What the properties say',
      );
    },
  ],
  [
    'route',
    ['HCP-003'],
    'submits to the exchange of commands, with the id of the callee as the key',
    async (bench) => {
      const { delivery } = await submitOf(bench);
      expectSame(
        delivery.route,
        { exchange: 'hcp.commands', routingKey: bench.callee.calleeId },
        'Where the submit went',
      );
    },
  ],
  [
    'payload',
    ['HCP-005'],
    'names itself, the capability, an intent and inputs',
    async (bench) => {
      const { payload } = await submitOf(bench);
      expectSame(payload.caller_id, bench.callerId, 'The caller_id');
      expectSame(payload.capability, 'hcp.conformance', 'The capability');
      expectMatch(payload.intent, /./, 'The intent');
      expectThat(typeof payload.inputs === 'object' && !Array.isArray(payload.inputs), 'The inputs are no object');
    },
  ],
  [
    'own-ids',
    ['HCP-001'],
    'gives each submit an id of its own',
    async (bench) => {
      bench.start({ submits: 2 });
      const [first, second] = [await bench.command('task_submit'), await bench.command('task_submit')];
      expectThat(first.message.message_id !== second.message.message_id, 'Two tasks have the same message_id');
    },
  ],
  [
    'sent-again',
    ['HCP-202', 'V-124'],
    'sends an unanswered submit again, the same bytes',
    async (bench) => {
      const first = await submitOf(bench, SHORT_MS);
      const second = await bench.command('task_submit');
      expectThat(second.text === first.text, 'The submit that was sent again differs from the first');
      const session = await bench.accept(second);
      await session.begin();
      await session.sees(1, 2);
    },
  ],
  [
    'gives-up',
    ['HCP-202', 'V-124'],
    'gives a submit up after its last try, and tells so',
    async (bench) => {
      bench.start({ submitTimeoutMs: SHORT_MS, submitTries: 3 });
      const { outcome } = await onlyOutcome(bench);
      expectThat(outcome === 'error', `The task ended ${outcome}, without any answer`);
      expectThat(bench.callee.heard.length === 3, `It was sent ${bench.callee.heard.length} times, not 3`);
    },
  ],
  [
    'answered-once',
    ['HCP-202'],
    'does not send a submit again that was answered',
    async (bench) => {
      const session = await bench.running({ submitTimeoutMs: SHORT_MS });
      await session.sees(1, 2);
      const before = bench.callee.heard.length; // it may have been slow to hear the answer
      await delay(3 * SHORT_MS);
      expectThat(bench.callee.heard.length === before, 'It was sent again after the answer');
    },
  ],
  [
    'unreachable',
    ['V-125', 'HCP-008'],
    'tells at once that there is no such callee',
    async (bench) => {
      bench.start({ calleeId: `${bench.callee.calleeId}-absent` });
      const { outcome } = await onlyOutcome(bench);
      expectThat(outcome === 'error', `The task ended ${outcome}, without a callee`);
    },
  ],
  [
    'late-acceptance',
    ['HCP-205', 'V-123'],
    'aborts a session that was accepted after it had given up',
    async (bench) => {
      const submit = await submitOf(bench, SHORT_MS, 1);
      await onlyOutcome(bench);
      const session = await bench.accept(submit);
      const abort = await bench.command('abort');
      expectThat(abort.message.session_id === session.sessionId, 'It aborted another session');
    },
  ],
  [
    'restart',
    ['HCP-203', 'V-138'],
    'still knows an open submit after a restart',
    async (bench) => {
      const submit = await submitOf(bench);
      await bench.restart();
      const session = await bench.accept(submit);
      await session.begin();
      await session.sees(1, 2);
    },
  ],
]);

function submitOf(bench: CallerBench, submitTimeoutMs?: number, submitTries?: number): Promise<HeardCommand> {
  bench.start({
    ...(submitTimeoutMs !== undefined && { submitTimeoutMs }),
    ...(submitTries !== undefined && { submitTries }),
  });
  return bench.command('task_submit');
}

/** How the only task ended. */
export function onlyOutcome(bench: CallerBench): Promise<ReportLine> {
  return bench.until(
    () => 'the outcome of the task',
    () => bench.report.lines.find(({ outcome }) => outcome !== undefined),
  );
}
